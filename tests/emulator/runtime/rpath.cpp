/// A program for its file alone: the linker gives it an RPATH.
int main() { return 0; }
