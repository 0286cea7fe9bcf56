// Vectors of the standard library, whose functions are the program's own where nothing is inlined.
// flags: -O0
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

static std::vector<double> make_hot() { return std::vector<double>(24u << 20, 1.0); }
static std::vector<double> make_cold() { return std::vector<double>(24u << 20, 1.0); }

int main() {
    auto begin = std::chrono::steady_clock::now();
    std::vector<double> hot = make_hot(), cold = make_cold();
    double sum = 0;
    while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(2)) sum = std::accumulate(hot.begin(), hot.end(), 0.0);
    sum += std::accumulate(cold.begin(), cold.end(), 0.0);
    std::puts(sum == (48u << 20) ? "OK" : "WRONG");
    return 0;
}
