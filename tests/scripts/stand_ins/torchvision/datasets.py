"""Data sets of generated images: 512 of them, each class with a pattern of its own."""

import zlib

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

COUNT = 512


class Generated(Dataset):
    """`size` is (height, width, channels); images are PIL images, as torchvision's are."""

    size, classes_count = (32, 32, 3), 10

    def __init__(self, root=None, train=True, transform=None, target_transform=None, **options):
        self.root, self.transform, self.target_transform = root, transform, target_transform
        self.train = train
        rng = np.random.default_rng(zlib.crc32(type(self).__name__.encode()) + (not train))
        self.targets = rng.integers(0, self.classes_count, COUNT).tolist()
        patterns = np.random.default_rng(7).random((self.classes_count, *self.size))
        noise = rng.random((COUNT, *self.size))
        images = (255 * (0.6 * patterns[self.targets] + 0.4 * noise)).astype(np.uint8)
        self.images = images[..., 0] if self.size[2] == 1 else images
        self.classes = [f"class {i}" for i in range(self.classes_count)]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.imgs = self.samples = [(f"{i}.png", t) for i, t in enumerate(self.targets)]

    @property
    def data(self):
        return torch.from_numpy(self.images) if self.size[2] == 1 else self.images

    train_data = test_data = data

    @property
    def train_labels(self):
        return torch.tensor(self.targets)

    test_labels = train_labels

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        image, target = Image.fromarray(self.images[index]), int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class MNIST(Generated):
    size = (28, 28, 1)

    @property
    def targets(self):
        return self._targets

    @targets.setter
    def targets(self, value):
        self._targets = torch.tensor(value)


class FashionMNIST(MNIST):
    pass


class KMNIST(MNIST):
    pass


class EMNIST(MNIST):
    pass


class USPS(Generated):
    size = (16, 16, 1)


class CIFAR10(Generated):
    pass


class CIFAR100(Generated):
    classes_count = 100


class SVHN(Generated):
    def __init__(self, root=None, split="train", transform=None, **options):
        super().__init__(root, split == "train", transform, **options)


class STL10(SVHN):
    size = (96, 96, 3)


class ImageFolder(Generated):
    size = (80, 72, 3)

    def __init__(self, root=None, transform=None, **options):
        super().__init__(root, True, transform, **options)


class LSUN(ImageFolder):
    def __init__(self, root=None, classes=None, transform=None, **options):
        super().__init__(root, transform, **options)


class CelebA(ImageFolder):
    size = (218, 178, 3)


class FakeData(Generated):
    def __init__(self, size=64, image_size=(3, 224, 224), num_classes=10, transform=None, **o):
        self.size, self.classes_count = (*image_size[1:], image_size[0]), num_classes
        super().__init__(None, True, transform)
