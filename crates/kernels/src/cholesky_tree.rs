//! Nested dissection of a box of grid points: which unknowns `cholesky` eliminates together, and which others each group touches.
//!
//! A region is cut by a plane across its longest edge; the two halves are eliminated before the plane. Of a region that is eliminated,
//! only the points face to face with it are touched: the rest follows from the coordinates. Does not hold numbers of the matrix.

/// Points of a region that is not cut any further.
const LEAF: usize = 64;

/// Levels of planes whose fronts are shared by all threads; the regions below are done one by a thread.
pub const TOP_LEVELS: usize = 2;

/// Points from `low` to `high`, which is not included, along each axis.
#[derive(Clone, Copy, Debug)]
struct Region {
    low: [usize; 3],
    high: [usize; 3],
}

impl Region {
    fn length(self, axis: usize) -> usize {
        self.high[axis] - self.low[axis]
    }

    fn count(self) -> usize {
        (0..3).map(|axis| self.length(axis)).product()
    }

    /// The halves and the plane between them; nothing of a leaf.
    fn cut(self) -> Option<[Self; 3]> {
        let axis = (0..3).max_by_key(|&axis| (self.length(axis), 2 - axis))?;
        if self.count() <= LEAF || self.length(axis) < 3 {
            return None;
        }
        let middle = self.low[axis] + self.length(axis) / 2;
        let [mut left, mut right, mut plane] = [self; 3];
        (left.high[axis], right.low[axis]) = (middle, middle + 1);
        (plane.low[axis], plane.high[axis]) = (middle, middle + 1);
        Some([left, right, plane])
    }

    /// The planes of points just outside, in a grid of these edges.
    fn sides(self, edges: [usize; 3]) -> impl Iterator<Item = Self> {
        (0..6).filter_map(move |number| {
            let (axis, mut side) = (number / 2, self);
            if number % 2 == 0 {
                side.low[axis] = self.low[axis].checked_sub(1)?;
                side.high[axis] = self.low[axis];
            } else {
                (side.low[axis], side.high[axis]) = (self.high[axis], self.high[axis] + 1);
            }
            (side.high[axis] <= edges[axis]).then_some(side)
        })
    }

    /// The numbers of its points in a grid of these edges, along x first.
    fn points(self, edges: [usize; 3]) -> impl Iterator<Item = usize> {
        let [xs, ys, zs] = [0, 1, 2].map(|axis| self.low[axis]..self.high[axis]);
        zs.flat_map(move |z| {
            let xs = xs.clone();
            ys.clone().flat_map(move |y| xs.clone().map(move |x| (z * edges[1] + y) * edges[0] + x))
        })
    }
}

/// Unknowns that are eliminated together.
#[derive(Clone, Debug)]
pub struct Node {
    /// The place of the first of them in the order of elimination, and how many.
    pub first: usize,
    /// How many unknowns are eliminated.
    pub pivots: usize,
    /// The later unknowns that they touch, ascending.
    pub boundary: Vec<u32>,
    /// The nodes of the halves of its region.
    pub children: Vec<usize>,
    /// Planes above it.
    pub level: usize,
}

impl Node {
    /// Rows of its front.
    pub fn rows(&self) -> usize {
        self.pivots + self.boundary.len()
    }

    /// Values of its columns of the factor.
    pub fn panel(&self) -> usize {
        self.rows() * self.pivots
    }

    /// Values of what it adds to later columns.
    pub fn update(&self) -> usize {
        self.boundary.len() * self.boundary.len()
    }
}

/// All nodes of a grid.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Points along each axis.
    pub edges: [usize; 3],
    /// In the order of elimination, children before parents.
    pub nodes: Vec<Node>,
    /// The place of each point in the order of elimination.
    pub places: Vec<u32>,
    /// The point at each place.
    pub points: Vec<u32>,
}

impl Tree {
    /// Of the grid four points thick, as near to a square as can be, whose factor and updates take at most `values` (and which has
    /// 4 x 4 x 4 points at least).
    pub fn largest(values: usize) -> Self {
        let shape = |half_way_round: usize| [half_way_round.div_ceil(2), half_way_round / 2, 4];
        let mut fits = 8;
        let mut step = 1 << 14;
        while step > 0 {
            if values_of(shape(fits + step)) <= values {
                fits += step;
            }
            step /= 2;
        }
        Self::new(shape(fits))
    }

    /// Of a grid of these edges.
    pub fn new(edges: [usize; 3]) -> Self {
        let count = edges.iter().product();
        let mut tree = Self { edges, nodes: Vec::new(), places: vec![0; count], points: Vec::with_capacity(count) };
        let mut regions = Vec::new();
        tree.dissect(Region { low: [0; 3], high: edges }, 0, &mut regions);
        for (node, region) in tree.nodes.iter_mut().zip(regions) {
            let outside = region.sides(edges).flat_map(|side| side.points(edges));
            node.boundary = outside.map(|point| tree.places[point]).collect();
            node.boundary.sort_unstable();
        }
        tree
    }

    fn dissect(&mut self, region: Region, level: usize, regions: &mut Vec<Region>) -> usize {
        let (children, plane) = match region.cut() {
            None => (Vec::new(), region),
            Some([left, right, plane]) => {
                (vec![self.dissect(left, level + 1, regions), self.dissect(right, level + 1, regions)], plane)
            }
        };
        let first = self.points.len();
        for point in plane.points(self.edges) {
            self.places[point] = self.points.len() as u32;
            self.points.push(point as u32);
        }
        regions.push(region);
        self.nodes.push(Node { first, pivots: plane.count(), boundary: Vec::new(), children, level });
        self.nodes.len() - 1
    }

    /// Whether the front of a node is shared by all threads.
    pub fn is_top(&self, node: usize) -> bool {
        self.nodes[node].level < TOP_LEVELS
    }

    /// The last nodes of the parts, in order: regions below the top with all that is in them, and the nodes of the top one by one.
    pub fn parts(&self) -> Vec<usize> {
        let is_root = |node: &usize| self.nodes[*node].level <= TOP_LEVELS;
        (0..self.nodes.len()).filter(is_root).collect()
    }

    /// The neighbours of a point: the axis, and the point, where it is inside the grid.
    pub fn neighbours(&self, point: usize) -> [(usize, Option<usize>); 6] {
        let [x, y, z] = self.edges;
        let at = [point % x, point / x % y, point / (x * y)];
        let stride = [1, x, x * y];
        std::array::from_fn(|number| {
            let axis = number / 2;
            let inside = if number % 2 == 0 { at[axis] > 0 } else { at[axis] + 1 < [x, y, z][axis] };
            (axis, inside.then(|| if number % 2 == 0 { point - stride[axis] } else { point + stride[axis] }))
        })
    }
}

/// Values that the parts of a grid take: of the factor and of updates.
fn values_of(edges: [usize; 3]) -> usize {
    let points = edges.iter().product::<usize>();
    let whole = Region { low: [0; 3], high: edges };
    let (factor, updates) = sizes(whole, edges, 0);
    factor + updates + points
}

/// (values of the factor, values of updates that are alive at once) of a region.
fn sizes(region: Region, edges: [usize; 3], level: usize) -> (usize, usize) {
    let square = |region: Region| region.sides(edges).map(Region::count).sum::<usize>().pow(2);
    let boundary = region.sides(edges).map(Region::count).sum::<usize>();
    match region.cut() {
        None => ((region.count() + boundary) * region.count(), boundary * boundary),
        Some([left, right, plane]) => {
            let ((l, of_l), (r, of_r)) = (sizes(left, edges, level + 1), sizes(right, edges, level + 1));
            let updates = if level < TOP_LEVELS {
                of_l + of_r + boundary * boundary
            } else {
                let both = square(left) + square(right);
                of_l.max(square(left) + of_r).max(both + boundary * boundary)
            };
            (l + r + (plane.count() + boundary) * plane.count(), updates)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_neighbour_is_in_the_front() {
        let tree = Tree::new([11, 9, 4]);
        assert!(tree.nodes.len() > 7 && tree.points.len() == 11 * 9 * 4);
        for node in &tree.nodes {
            for place in node.first..node.first + node.pivots {
                for other in tree.neighbours(tree.points[place] as usize).into_iter().filter_map(|(_, point)| point) {
                    let other = tree.places[other];
                    let known = (other as usize) < node.first + node.pivots || node.boundary.binary_search(&other).is_ok();
                    assert!(known, "{place} {other}");
                }
            }
            for &child in &node.children {
                let inside = |place: &u32| (*place as usize) < node.first + node.pivots || node.boundary.contains(place);
                assert!(tree.nodes[child].boundary.iter().all(inside));
            }
        }
    }
}
