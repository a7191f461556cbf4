"""skorch: a network as scikit-learn's estimator, in a pipeline and a grid search."""

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

rng = np.random.default_rng(0)
x = rng.normal(size=(60, 8)).astype(np.dtype(str(torch.get_default_dtype()).split(".")[-1]))
y = x[:, :3].argmax(1)


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, x):
        return self.layers(x).softmax(-1)


class Show(Callback):
    def on_epoch_end(self, net, **kwargs):
        print(net.history[-1, "train_loss"])


net = NeuralNetClassifier(
    Net, max_epochs=6, lr=0.1, batch_size=20, optimizer__momentum=0.9, train_split=None,
    verbose=0, callbacks=[Show],
)  # fmt: skip
pipeline = make_pipeline(StandardScaler(), net)
pipeline.fit(x, y)
print("chances", pipeline.predict_proba(x[:4]), pipeline.score(x, y))
net.set_params(callbacks=None)
search = GridSearchCV(net, {"module__width": [4, 8]}, cv=2, scoring="neg_log_loss").fit(x, y)
print("search", search.cv_results_["mean_test_score"])
