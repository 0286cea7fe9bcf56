// Containers of C++, and a chain of nodes in no order.
#include "truth.h"
#include <numeric>
#include <vector>

struct Node {
  long next;
  long pad[7];
};

static __attribute__((noinline)) std::vector<double> make_read(size_t n) { return std::vector<double>(n, 1.5); }
static __attribute__((noinline)) std::vector<double> make_updated(size_t n) { return std::vector<double>(n, 2.5); }
static __attribute__((noinline)) std::vector<Node> make_chain(size_t n) { return std::vector<Node>(n); }

static __attribute__((noinline)) long follow(const std::vector<Node> &chain, long at, long steps) {
  for (long k = 0; k < steps; k++) at = SEE(chain[at].next);
  return at;
}

static __attribute__((noinline)) double sum_of(const std::vector<double> &all) {
  return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const double &value) { return sum + SEE(value); });
}

// What a constructor filled, in order.
template <typename T> static void made(const char *name, const std::vector<T> &all) {
  SEE_OBJECT(name, all.data(), all.size() * sizeof(T));
  size_t step = 64 / sizeof(T);
  for (size_t i = 0; i < all.size(); i += step) (void)SEE(all[i]);
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  size_t n = truth_size / 8, nodes = 3 * truth_size / sizeof(Node);
  auto read = make_read(n), updated = make_updated(n);
  auto chain = make_chain(nodes);
  made("make_read", read), made("make_updated", updated), made("make_chain", chain);
  // A full cycle in a random order (Sattolo).
  std::vector<unsigned> order(nodes);
  std::iota(order.begin(), order.end(), 0u);
  unsigned long x = 88172645463325252UL;
  for (size_t i = nodes - 1; i > 0; i--) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    std::swap(order[i], order[x % i]);
  }
  for (size_t i = 0; i < nodes; i++) SEE(chain[i].next) = order[i];
  std::vector<unsigned>().swap(order);
  truth *tr = truth_of("make_read", 0), *tu = truth_of("make_updated", 0), *tc = truth_of("make_chain", 1);
  tr->bytes = tu->bytes = truth_size;
  tc->bytes = 2.0 * 3 * truth_size;
  long at = 0, steps = 1 << 19;
  while (truth_another()) {
    for (int k = 0; k < 3; k++) truth_sink = truth_sink + sum_of(read);
    for (double &value : updated) SEE(value) = SEE(value) * 0.5 + 1;
    at = follow(chain, at, steps);
    tr->bytes += 3.0 * truth_size;
    tu->bytes += 2.0 * truth_size;
    tc->bytes += (double)steps * LINE;  // A cycle: no node comes again before all others.
  }
  truth_sink = truth_sink + at;
  truth_print();
}
