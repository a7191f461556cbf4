"""Functions that scripts use."""

from torchvision.transforms import PILToTensor, ToPILImage, ToTensor

to_tensor, pil_to_tensor, to_pil_image = ToTensor(), PILToTensor(), ToPILImage()
