// A vector and a new[] of known sizes.
#include <cstdio>
#include <vector>

struct Mesh {
    std::vector<double> cells;
    float *faces;
    __attribute__((noinline)) void build(std::size_t n) {
        cells.resize(n);
        faces = new float[n]();
    }
};

int main() {
    Mesh mesh;
    mesh.build(300000);
    double sum = 0;
    for (int round = 0; round < 300; round++)
        for (std::size_t i = 0; i < 300000; i++) sum += mesh.cells[i] + mesh.faces[i];
    std::puts(sum == 0 ? "OK" : "BAD");
    delete[] mesh.faces;
}
