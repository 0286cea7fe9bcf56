// C++17 aligned new, containers, and memory that is freed when static objects go.
// flags: -std=c++17
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
struct alignas(256) Wide { char bytes[1 << 20]; };
static std::vector<std::string> kept;
int main() {
    for (int i = 0; i < 10; i++) {
        Wide *one = new Wide, *many = new Wide[3];
        if (reinterpret_cast<uintptr_t>(one) % 256 || reinterpret_cast<uintptr_t>(many) % 256) return 1;
        delete one;
        delete[] many;
    }
    std::map<int, std::vector<double>> all;
    for (int i = 0; i < 200; i++) all[i].assign(10000 + i, i);
    double sum = 0;
    for (auto &entry : all) for (double x : entry.second) sum += x;
    for (int i = 0; i < 1000; i++) kept.push_back(std::string(5000, 'x'));
    std::printf("%.0f\nOK\n", sum);
}
