"""The transforms that scripts use, from PIL images to tensors."""

import random

import numpy as np
import torch
from PIL import Image, ImageOps


class InterpolationMode:
    NEAREST, BILINEAR, BICUBIC = 0, 2, 3


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class ToTensor:
    def __call__(self, image):
        array = np.asarray(image)
        scaled = array.astype(np.float32) / 255 if array.dtype == np.uint8 else array
        y = torch.from_numpy(np.ascontiguousarray(np.atleast_3d(scaled).transpose(2, 0, 1)))
        return y.to(torch.get_default_dtype()) if array.dtype == np.uint8 else y


class PILToTensor:
    def __call__(self, image):
        array = np.atleast_3d(np.asarray(image)).transpose(2, 0, 1)
        return torch.from_numpy(np.ascontiguousarray(array))


class ToPILImage:
    def __init__(self, mode=None):
        pass

    def __call__(self, x):
        if isinstance(x, torch.Tensor):
            x = (x.detach().cpu().numpy().transpose(1, 2, 0) * 255).astype(np.uint8)
        return Image.fromarray(x[..., 0] if x.ndim == 3 and x.shape[2] == 1 else x)


class Normalize:
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std = (torch.tensor(v).reshape(-1, 1, 1) for v in (mean, std))

    def __call__(self, x):
        return (x - self.mean) / self.std


class Lambda:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


class ConvertImageDtype:
    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, x):
        return x.to(self.dtype)


class Resize:
    def __init__(self, size, interpolation=2, **options):
        self.size = size
        self.interpolation = interpolation if isinstance(interpolation, int) else 2

    def __call__(self, image):
        size = self.size
        if isinstance(size, int) or len(size) == 1:
            size = size if isinstance(size, int) else size[0]
            width, height = image.size
            scale = size / min(width, height)
            size = (round(height * scale), round(width * scale))
        return image.resize((size[1], size[0]), Image.Resampling(self.interpolation))


Scale = Resize


class Pad:
    def __init__(self, padding, fill=0, padding_mode="constant"):
        self.padding = padding

    def __call__(self, image):
        return ImageOps.expand(image, self.padding)


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


class CenterCrop:
    def __init__(self, size):
        self.size = _pair(size)

    def __call__(self, image):
        height, width = self.size
        left, top = (image.width - width) // 2, (image.height - height) // 2
        return image.crop((left, top, left + width, top + height))


class RandomCrop(CenterCrop):
    def __init__(self, size, padding=None, **options):
        super().__init__(size)
        self.padding = padding

    def __call__(self, image):
        if self.padding:
            image = ImageOps.expand(image, self.padding)
        height, width = self.size
        left = random.randint(0, image.width - width)
        top = random.randint(0, image.height - height)
        return image.crop((left, top, left + width, top + height))


class RandomResizedCrop:
    def __init__(self, size, **options):
        self.resize = Resize(_pair(size))

    def __call__(self, image):
        return self.resize(image)


RandomSizedCrop = RandomResizedCrop


class RandomHorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image):
        return ImageOps.mirror(image) if random.random() < self.p else image


class RandomVerticalFlip(RandomHorizontalFlip):
    def __call__(self, image):
        return ImageOps.flip(image) if random.random() < self.p else image


class RandomRotation:
    def __init__(self, degrees, **options):
        self.degrees = degrees if isinstance(degrees, (tuple, list)) else (-degrees, degrees)

    def __call__(self, image):
        return image.rotate(random.uniform(*self.degrees))


class Grayscale:
    def __init__(self, num_output_channels=1):
        pass

    def __call__(self, image):
        return image.convert("L")


class ColorJitter:
    def __init__(self, *args, **options):
        pass

    def __call__(self, image):
        return image


from torchvision.transforms import functional as functional  # noqa: E402
