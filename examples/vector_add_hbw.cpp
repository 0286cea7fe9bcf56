// c = a + b with two vectors in high-bandwidth memory: C++ as the tutorial has it, with memkind's allocator. nearfar's own
// libmemkind.so.0 and hbw_allocator.h serve it; so do others'.
#include <cstdio>
#include <cstdlib>
#include <hbw_allocator.h>
#include <vector>

int main(int argc, char **argv) {
    const std::size_t n = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000000;
    std::vector<double, hbw::allocator<double>> a(n), b(n);
    std::vector<double> c(n);
    for (std::size_t i = 0; i < n; i++) {
        a[i] = static_cast<double>(i);
        b[i] = 0.5 * static_cast<double>(i);
    }
#pragma omp parallel for simd
    for (std::size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
    double sum = 0.0;
    for (double value : c) sum += value;
    std::printf("vector add: %zu elements, sum %.1f\n", n, sum);
}
