// c = a + b with two vectors in near memory and one in far: C++ with nearfar.hpp.
#include <cstdio>
#include <cstdlib>
#include <nearfar.hpp>
#include <vector>

int main(int argc, char **argv) {
    const std::size_t n = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000000;
    std::vector<double, nearfar::near_allocator<double>> a(n), b(n);
    std::vector<double, nearfar::far_allocator<double>> c(n);
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
