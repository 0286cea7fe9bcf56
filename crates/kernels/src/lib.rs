//! The workloads that `nearfar bench` and `nearfar probe` run, and the measurement of a far device.
//!
//! Each workload is a function on ordinary memory: it knows nothing of tiers, so that a pager under it, kernel swap or a mapped
//! file see the same program. Results do not depend on placement, threads or timing: every workload can verify its data.
//! Does not decide what to compare: that is `nearfar bench`.
//!
//! Modules are listed lowest first; a module uses only modules above it in this list.

pub mod permutation;

pub mod zipf;

pub mod histogram;

pub mod sweep_order;

pub mod mapped_file;

pub mod buffer;

pub mod report;

pub mod thread_team;

pub mod timed_run;

pub mod stream;

pub mod polynomial;

pub mod random_updates;

pub mod chase;

pub mod gemm_tile;

pub mod gemm;

pub mod gemm_plain;

pub mod touch;

pub mod sweep;

pub mod columns;

pub mod fft_lines;

pub mod fft;

pub mod lu_tile;

pub mod lu_matrix;

pub mod fft_blocked;

pub mod state_vector;

pub mod qft;

pub mod circuit;

pub mod gaussians;

pub mod fock_sums;

pub mod integrals;

pub mod complex_tile;

pub mod tall_matrices;

pub mod planewave;

pub mod lu;

pub mod lu_columns;

pub mod lu_tiled;

pub mod trisolve;

pub mod spectral_element;

pub mod spectral_mesh;

pub mod spectral;

pub mod su3_matrix;

pub mod su3;

pub mod hydro;

pub mod md_box;

pub mod md_pairs;

pub mod md;

pub mod cholesky_tree;

pub mod cholesky_matrix;

pub mod cholesky_front;

pub mod cholesky;

pub mod object_store;

pub mod objects;

pub mod sort;

pub mod join;

pub mod btree;

pub mod skewed_graph;

pub mod bfs;

pub mod churn;

pub mod latency;

pub mod device;

pub mod spin_barrier;

pub mod probe;
pub mod compute;

pub mod hog;

pub mod probe_overhead;

pub mod allocator;

pub mod service;
