// Runs a libFuzzer entry point without libFuzzer, so that it works with every compiler and in ctest: random changes of
// a corpus, for a given time or number of runs. There is no coverage feedback; for that, build with libFuzzer.
//
// An input that ends the process, or runs too long, is left in the file crash-<seed>-<run>.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t max_input = 64 * 1024;
constexpr unsigned seconds_per_input = 20;

/// Prepared for the signal handler, which cannot allocate.
std::string current_input;
std::array<char, 64> crash_file{};

extern "C" void leave_input(int signal)
{
    const int file = open(crash_file.data(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
        const bool written = write(file, current_input.data(), current_input.size()) >= 0;
        constexpr std::string_view message = "the input is in ";
        if (written && write(STDERR_FILENO, message.data(), message.size()) >= 0) {
            (void)!write(STDERR_FILENO, crash_file.data(), std::string_view(crash_file.data()).size());
            (void)!write(STDERR_FILENO, "\n", 1);
        }
        close(file);
    }
    std::signal(signal, SIG_DFL);
    (void)std::raise(signal);
}

std::string read_file(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads files, and the files in directories, in the order of their names.
std::vector<std::string> read_corpus(const std::vector<std::string>& names)
{
    std::vector<std::filesystem::path> paths;
    for (const std::string& name : names) {
        if (std::filesystem::is_directory(name)) {
            for (const auto& entry : std::filesystem::directory_iterator(name)) {
                paths.push_back(entry.path());
            }
        } else {
            paths.emplace_back(name);
        }
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> corpus;
    for (const std::filesystem::path& path : paths) {
        corpus.push_back(read_file(path));
    }
    return corpus;
}

/// Returns the text between the quotes of a dictionary's line: \" and \\ and \xAB are single characters.
std::string unescape(std::string_view text)
{
    std::string token;
    while (!text.empty()) {
        if (text.front() == '\\' && text.size() >= 4 && text[1] == 'x') {
            token += static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, 16));
            text.remove_prefix(4);
        } else {
            text.remove_prefix(text.front() == '\\' && text.size() > 1 ? 1 : 0);
            token += text.front();
            text.remove_prefix(1);
        }
    }
    return token;
}

/// Returns the entries of a libFuzzer dictionary: one quoted text per line, # comments.
std::vector<std::string> read_dictionary(const std::string& name)
{
    std::vector<std::string> tokens;
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
        const std::size_t begin = line.find('"');
        const std::size_t end = line.rfind('"');
        if (!line.empty() && line.front() != '#' && begin != end) {
            tokens.push_back(unescape(std::string_view(line).substr(begin + 1, end - begin - 1)));
        }
    }
    return tokens;
}

class Mutator {
public:
    Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> tokens)
        : random_(seed), corpus_(std::move(corpus)), tokens_(std::move(tokens))
    {}

    /// Returns a text of the corpus after one to eight changes.
    std::string next()
    {
        constexpr std::size_t most_changes = 8;
        std::string text = pick(corpus_);
        for (std::size_t changes = 1 + below(most_changes); changes > 0; --changes) {
            change(text);
        }
        text.resize(std::min(text.size(), max_input));
        return text;
    }

private:
    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

    const std::string& pick(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

    /// Returns up to `most` characters from anywhere in `text`.
    std::string piece(const std::string& text, std::size_t most)
    {
        return text.empty() ? std::string() : text.substr(below(text.size()), below(most));
    }

    std::string number()
    {
        static constexpr std::string_view numbers[] = {"0",
                                                       "-1",
                                                       "1e999",
                                                       "0x",
                                                       "0f7FC00000",
                                                       "2147483648",
                                                       "4294967295",
                                                       "9223372036854775807",
                                                       "9223372036854775808",
                                                       "18446744073709551615",
                                                       "18446744073709551616"};
        return std::string(numbers[below(std::size(numbers))]);
    }

    void change(std::string& text)
    {
        constexpr std::size_t kinds = 11;
        const std::size_t at = below(text.size() + 1);
        switch (below(kinds)) {
            case 0: text.insert(at, pick(tokens_)); break;
            case 1: text.replace(at, below(8), pick(tokens_)); break;
            case 2: text.erase(at, 1 + below(16)); break;
            case 3: text.insert(at, piece(pick(corpus_), 64)); break;
            case 4: text.insert(at, piece(text, 64)); break;
            case 5: text.insert(at, 1, static_cast<char>(below(256))); break;
            case 6: text.replace(at, below(4), number()); break;
            case 7: text.resize(at); break;
            case 8:
            case 9: overwrite(text, at); break;
            default: repeat(text, at); break;
        }
    }

    /// Changes a field of a binary: 1, 2, 4 or 8 bytes in place.
    void overwrite(std::string& text, std::size_t at)
    {
        const std::size_t bytes = std::size_t{1} << below(4);
        at = at / bytes * bytes;
        if (at + bytes > text.size()) {
            return;
        }
        std::uint64_t value = 0;
        std::memcpy(&value, text.data() + at, bytes);
        switch (below(5)) {
            case 0: value = random_(); break;
            case 1: value += below(33) - 16; break;
            case 2: value = std::uint64_t{1} << below(64); break;
            case 3: value = ~std::uint64_t{0} << below(64); break;
            default: value ^= std::uint64_t{1} << below(8 * bytes); break;
        }
        std::memcpy(text.data() + at, &value, bytes);
    }

    /// Tests depth and length: repeats the same few characters.
    void repeat(std::string& text, std::size_t at)
    {
        const std::string unit = below(2) == 0 ? pick(tokens_) : piece(text, 8);
        std::string run;
        for (std::size_t times = below(400); times > 0; --times) {
            run += unit;
        }
        text.insert(at, run);
    }

    std::mt19937_64 random_;
    std::vector<std::string> corpus_, tokens_;
};

void run_one(const std::string& input)
{
    current_input = input;
    alarm(seconds_per_input);
    (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    alarm(0);
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Fuzzes with random changes of a corpus");
    double seconds = 5;
    std::uint64_t runs = UINT64_MAX;
    std::uint64_t seed = std::random_device{}();
    std::string dictionary;
    std::vector<std::string> names;
    app.add_option("--seconds", seconds, "time limit")->capture_default_str();
    app.add_option("--runs", runs, "number of inputs after which to stop, for exact repetition");
    app.add_option("--seed", seed, "of the random changes; fresh if not given");
    app.add_option("--dictionary", dictionary, "tokens, as libFuzzer's -dict")->check(CLI::ExistingFile);
    app.add_option("corpus", names, "files, or folders of files")->required()->check(CLI::ExistingPath);
    CLI11_PARSE(app, argc, argv);

    const std::vector<std::string> corpus = read_corpus(names);
    std::vector<std::string> tokens = read_dictionary(dictionary);
    tokens.emplace_back(";");
    if (corpus.empty()) {
        fmt::print(stderr, "the corpus has no files\n");
        return 2;
    }
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGALRM}) {
        std::signal(signal, leave_input);
    }
    fmt::print("seed {}, {} files, {} tokens\n", seed, corpus.size(), tokens.size());
    const auto start = std::chrono::steady_clock::now();
    const auto set_crash_file = [seed](std::uint64_t run) {
        crash_file.fill('\0');
        fmt::format_to_n(crash_file.data(), crash_file.size() - 1, "crash-{}-{}", seed, run);
    };
    set_crash_file(0);
    for (const std::string& input : corpus) {
        run_one(input);
    }
    Mutator mutator(seed, corpus, tokens);
    std::uint64_t run = 0;
    while (run < runs && std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds)) {
        set_crash_file(++run);
        run_one(mutator.next());
    }
    fmt::print("{} inputs\n", run + corpus.size());
    return 0;
}
