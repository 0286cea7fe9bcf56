//! Link matrices of `su3`: complex numbers, random unitary matrices, and products of a row of sites at a time.

use nearfar_core::random_numbers::Random;

/// Sites that are stored side by side: a row.
pub const ROW: usize = 16;

/// One value of each site of a row.
pub type Lane = [f64; ROW];
/// A complex number of each site: real parts, imaginary parts.
pub type Lanes = [Lane; 2];
/// A vector of each site.
pub type Vectors = [Lanes; 3];
/// A matrix of each site, row by row.
pub type Matrices = [[Lanes; 3]; 3];
/// Floating-point operations for one site of [`add_product`] and [`subtract_adjoint_product`].
pub const PRODUCT_FLOP: u64 = 72;

/// Real and imaginary part.
pub type Complex = (f64, f64);

/// The sum.
pub fn plus(a: Complex, b: Complex) -> Complex {
    (a.0 + b.0, a.1 + b.1)
}

/// The difference.
pub fn minus(a: Complex, b: Complex) -> Complex {
    (a.0 - b.0, a.1 - b.1)
}

/// The product.
pub fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The complex conjugate.
pub const fn conjugate(a: Complex) -> Complex {
    (a.0, -a.1)
}

/// A random unitary matrix of determinant 1: two rows made orthonormal, and their cross product.
pub fn unitary(seed: u64) -> [[Complex; 3]; 3] {
    let mut random = Random::new(seed);
    let mut any = || [(); 3].map(|()| (random.unit() - 0.5, random.unit() - 0.5));
    let (first, second) = (normal(any()), any());
    let along = (0..3).map(|k| times(conjugate(first[k]), second[k])).fold((0.0, 0.0), plus);
    let second = normal([0, 1, 2].map(|k| minus(second[k], times(first[k], along))));
    let cross = |a: usize, b: usize| conjugate(minus(times(first[a], second[b]), times(first[b], second[a])));
    [first, second, [cross(1, 2), cross(2, 0), cross(0, 1)]]
}

fn normal(vector: [Complex; 3]) -> [Complex; 3] {
    let length = vector.iter().map(|(re, im)| re * re + im * im).sum::<f64>().sqrt();
    vector.map(|(re, im)| (re / length, im / length))
}

/// sum += U v.
pub fn add_product(sum: &mut Vectors, matrices: &Matrices, v: &Vectors) {
    for ([re, im], [u0, u1, u2]) in sum.iter_mut().zip(matrices) {
        let [v0, v1, v2] = v;
        for site in 0..ROW {
            let of = |u: &Lanes, v: &Lanes| times((u[0][site], u[1][site]), (v[0][site], v[1][site]));
            let product = plus(plus(of(u0, v0), of(u1, v1)), of(u2, v2));
            (re[site], im[site]) = plus((re[site], im[site]), product);
        }
    }
}

/// sum -= U^+ v, with the adjoint of U.
pub fn subtract_adjoint_product(sum: &mut Vectors, matrices: &Matrices, v: &Vectors) {
    let [row0, row1, row2] = matrices;
    for ([re, im], ((u0, u1), u2)) in sum.iter_mut().zip(row0.iter().zip(row1).zip(row2)) {
        let [v0, v1, v2] = v;
        for site in 0..ROW {
            let of = |u: &Lanes, v: &Lanes| times((u[0][site], -u[1][site]), (v[0][site], v[1][site]));
            let product = plus(plus(of(u0, v0), of(u1, v1)), of(u2, v2));
            (re[site], im[site]) = minus((re[site], im[site]), product);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_unitary_and_of_determinant_1() {
        for seed in 0..100 {
            let u = unitary(seed);
            for (a, b) in (0..9).map(|pair| (pair / 3, pair % 3)) {
                let (re, im) = (0..3).map(|k| times(u[a][k], conjugate(u[b][k]))).fold((0.0, 0.0), plus);
                assert!((re - f64::from(u8::from(a == b))).abs() < 1e-12 && im.abs() < 1e-12);
            }
            let minor = |a: usize, b: usize| minus(times(u[1][a], u[2][b]), times(u[1][b], u[2][a]));
            let (re, im) =
                [(0, 1, 2), (1, 2, 0), (2, 0, 1)].map(|(k, a, b)| times(u[0][k], minor(a, b))).into_iter().fold((0.0, 0.0), plus);
            assert!((re - 1.0).abs() < 1e-12 && im.abs() < 1e-12);
        }
    }
}
