//! Two-electron repulsion integrals over contracted s-type Gaussian functions, by the closed formula with the Boys function F0.
//!
//! Functions stand at random centres of a box, as dense as hydrogen atoms would, and each is a sum of three primitives (STO-3G, scaled
//! a little from one to another). Products of two primitives that are negligible are left out, as integral codes do. Does not know
//! what the integrals are for.

use std::f64::consts::PI;

use nearfar_core::random_numbers::Random;

/// Exponents and coefficients of the primitives: STO-3G for hydrogen.
const PRIMITIVES: [(f64, f64); 3] = [(3.425_250_91, 0.154_328_97), (0.623_913_73, 0.535_328_14), (0.168_855_40, 0.444_634_54)];

/// Bohr per centre along each edge of the box.
const SPACING: f64 = 3.0;

/// Products of primitives whose weight is below this are left out.
const NEGLIGIBLE: f64 = 1e-7;

/// Flop of a quartet of primitives with the table's side of F0, as the loop does them; the other side counts as much.
pub const QUARTET_FLOP: f64 = 32.0;

/// Nodes of the table of F0 per unit of its argument, and the argument from which the asymptotic form is exact to rounding.
const NODES_PER_UNIT: f64 = 16.0;
const LAST: f64 = 33.0;

/// Terms of the Taylor series around a node: the next one is below 1e-13.
const TERMS: usize = 6;

/// The product of two primitives: a Gaussian again.
#[derive(Clone, Copy, Debug)]
struct Product {
    exponent: f64,
    centre: [f64; 3],
    weight: f64,
}

/// Functions, the products of each pair of them, and the table of F0.
#[derive(Debug)]
pub struct Basis {
    /// Number of functions.
    pub functions: usize,
    /// Products of all pairs, in the order of pairs.
    products: Vec<Product>,
    /// Number of the first product of each pair, and of the end.
    starts: Vec<usize>,
    boys: Vec<[f64; TERMS]>,
}

/// The number of pair (i, j) with i >= j: 0 for (0, 0), 1 for (1, 0), 2 for (1, 1).
pub const fn pair(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

impl Basis {
    /// As many functions, always the same.
    pub fn new(functions: usize) -> Self {
        let mut random = Random::new(0xe7);
        let edge = SPACING * (functions as f64).cbrt();
        let placed: Vec<_> = (0..functions).map(|_| ([0; 3].map(|_| random.unit() * edge), 0.8 + 0.4 * random.unit())).collect();
        let (mut products, mut starts) = (Vec::new(), vec![0]);
        for (i, a) in placed.iter().enumerate() {
            for b in &placed[..=i] {
                let first = products.len();
                products.extend(products_of(a, b));
                // The largest is kept, so that no pair is empty.
                let largest =
                    products[first..].iter().copied().fold(products[first], |a, b| if b.weight > a.weight { b } else { a });
                products.truncate(first);
                products.extend(products_of(a, b).filter(|product| product.weight > NEGLIGIBLE));
                if products.len() == first {
                    products.push(largest);
                }
                starts.push(products.len());
            }
        }
        Self { functions, products, starts, boys: boys_table() }
    }

    /// Pairs of functions.
    pub const fn pairs(&self) -> usize {
        pair(self.functions, 0)
    }

    /// Quartets of primitives in the integrals of pair `ij` with the pairs up to it.
    pub fn quartets(&self, ij: usize) -> f64 {
        ((self.starts[ij + 1] - self.starts[ij]) * self.starts[ij + 1]) as f64
    }

    /// The integrals of pair `ij` with pairs from `first` on.
    pub fn integrals(&self, ij: usize, first: usize, values: &mut [f64]) {
        let own = &self.products[self.starts[ij]..self.starts[ij + 1]];
        for (value, bounds) in values.iter_mut().zip(self.starts[first..].windows(2)) {
            let mut sum = 0.0;
            for q in &self.products[bounds[0]..bounds[1]] {
                for p in own {
                    sum += self.repulsion(p, q);
                }
            }
            *value = sum;
        }
    }

    #[inline(always)]
    fn repulsion(&self, p: &Product, q: &Product) -> f64 {
        let inverse = 1.0 / (p.exponent + q.exponent);
        let [x, y, z] = [0, 1, 2].map(|axis| p.centre[axis] - q.centre[axis]);
        let argument = p.exponent * q.exponent * inverse * (x * x + y * y + z * z);
        p.weight * q.weight * inverse.sqrt() * self.boys(argument)
    }

    /// F0, the integral of exp(-t u^2) over u from 0 to 1.
    #[inline(always)]
    fn boys(&self, t: f64) -> f64 {
        if t >= LAST {
            return 0.5 * (PI / t).sqrt();
        }
        let node = (t * NODES_PER_UNIT + 0.5) as i32;
        let distance = t - f64::from(node) * (1.0 / NODES_PER_UNIT);
        let [a, b, c, d, e, f] = self.boys[node as usize];
        a + distance * (b + distance * (c + distance * (d + distance * (e + distance * f))))
    }
}

/// All nine products of two functions, each a centre and a scale of lengths.
fn products_of<'a>(a: &'a ([f64; 3], f64), b: &'a ([f64; 3], f64)) -> impl Iterator<Item = Product> + 'a {
    let all = PRIMITIVES.iter().flat_map(|one| PRIMITIVES.iter().map(move |other| (one, other)));
    all.map(|(&(one, c), &(other, d))| {
        let (one, other) = (one * a.1 * a.1, other * b.1 * b.1);
        let exponent = one + other;
        let centre = [0, 1, 2].map(|axis| (one * a.0[axis] + other * b.0[axis]) / exponent);
        let square: f64 = (0..3).map(|axis| (a.0[axis] - b.0[axis]).powi(2)).sum();
        let norm = (4.0 * one * other / PI / PI).powf(0.75);
        // Two of these factors make the 2 PI^(5/2) / (p q) of the integral.
        let factor = 2f64.sqrt() * PI.powf(1.25) / exponent;
        Product { exponent, centre, weight: c * d * norm * factor * (-one * other / exponent * square).exp() }
    })
}

/// Coefficients of the Taylor series of F0 around each node: its derivatives are the Boys functions of higher order, with signs.
fn boys_table() -> Vec<[f64; TERMS]> {
    let nodes = (LAST * NODES_PER_UNIT) as usize + 1;
    let of_node = |node: usize| {
        let t = node as f64 / NODES_PER_UNIT;
        let mut factor = 1.0;
        [0, 1, 2, 3, 4, 5].map(|order| {
            if order > 0 {
                factor *= -1.0 / order as f64;
            }
            factor * boys_series(order, t)
        })
    };
    (0..nodes).map(of_node).collect()
}

/// The Boys function of any order by a series of positive terms.
fn boys_series(order: usize, t: f64) -> f64 {
    let mut term = 1.0 / (2 * order + 1) as f64;
    let mut sum = term;
    let mut odd = (2 * order + 1) as f64;
    while term > sum * 1e-17 {
        odd += 2.0;
        term *= 2.0 * t / odd;
        sum += term;
    }
    sum * (-t).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boys_function_is_its_integral() {
        let basis = Basis::new(1);
        for t in [0.0, 1e-9, 0.03, 0.7, 3.0, 9.99, 32.96, 32.9999, 33.0, 50.0] {
            // Simpson's rule.
            let steps = 20_000;
            let at = |step: usize| (-t * (step as f64 / steps as f64).powi(2)).exp();
            let inner: f64 = (1..steps).map(|step| at(step) * if step % 2 == 1 { 4.0 } else { 2.0 }).sum();
            let integral = (at(0) + inner + at(steps)) / 3.0 / steps as f64;
            assert!((basis.boys(t) - integral).abs() < 2e-13, "{t}: {} {integral}", basis.boys(t));
        }
    }

    #[test]
    fn an_atom_repels_itself_as_published() {
        // (11|11) of hydrogen in STO-3G with scale 1 in these exponents is 0.7746 hartree (Szabo and Ostlund, table 3.5).
        let atom = ([0.0; 3], 1.0);
        let basis = Basis { products: products_of(&atom, &atom).collect(), starts: vec![0, 9], ..Basis::new(1) };
        let mut value = [0.0];
        basis.integrals(0, 0, &mut value);
        assert!((value[0] - 0.7746).abs() < 5e-5, "{value:?}");
    }
}
