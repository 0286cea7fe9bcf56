# FFT there and back of 4 M complex numbers (64 MiB each array, several of them), and a real two-dimensional one.
import numpy as np
n = 1 << 22
rng = np.random.default_rng(2)
x = rng.standard_normal(n) + 1j * rng.standard_normal(n)
f = np.fft.fft(x)
y = np.fft.ifft(f)
print("back: %s" % bool(np.abs(x - y).max() < 1e-9), "parseval %.6f" % (np.vdot(f, f).real / n / np.vdot(x, x).real))
image = rng.random((2048, 2048))
spectrum = np.fft.rfft2(image)
again = np.fft.irfft2(spectrum, image.shape)
print("image: %s %.4f" % (bool(np.abs(image - again).max() < 1e-10), np.abs(spectrum).sum()))
