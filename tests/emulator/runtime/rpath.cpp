/// A program used only as a file: the linker gives it an RPATH.
int main() { return 0; }
