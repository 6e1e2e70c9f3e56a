// Asks a Hopper GPU what it does, fact by fact, and prints the answers, one line each: "name = value". hopper_facts.txt
// has the answers of a real one; with --check the emulated device, or another GPU, is compared with it.
//
// A line "name ~ value" of the file is a fact that the emulated device answers differently on purpose:
// docs/notes/emulator-h200.md says why. It is not compared. Nor is a question without an answer in the file, until a
// GPU was asked.
//
// Facts are values, never times. Each section runs in a separate process, so that a fault is an ordinary answer.
//
// Build:   nvcc -std=c++20 -O1 -cudart shared -gencode arch=compute_90a,code=sm_90a *.cu -o truth_recorder
// Record:  ./truth_recorder > hopper_facts.txt  (and put the comment lines back)

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "facts.hpp"

namespace tessera::truth {
namespace {

constexpr unsigned longest_section = 60;  ///< seconds; then it counts as a hang

/// The output of a section. The CUDA runtime does not survive a fork, so this process must never call it.
std::string ask(const Section& section)
{
    int ends[2] = {};
    if (pipe(ends) != 0) {
        std::perror("pipe");
        std::exit(1);
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(longest_section);
        Facts facts(fdopen(ends[1], "w"));
        section.ask(facts, section.variant);
        std::exit(0);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(size));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        text += section.name + " = the section did not end well\n";
    }
    return text;
}

using FactMap = std::map<std::string, std::string>;

/// Splits a line "name = value"; `mark` may be another character than '='.
void take_line(const std::string& line, FactMap& facts, char mark = '=')
{
    const std::size_t split = line.find(std::string{' ', mark, ' '});
    if (!line.empty() && line[0] != '#' && split != std::string::npos) {
        facts[line.substr(0, split)] = line.substr(split + 3);
    }
}

/// The number of facts that differ or are no longer asked. Questions newer than the file are only listed.
int compare(const FactMap& stored, const FactMap& asked)
{
    int differing = 0, unanswered = 0;
    FactMap all = stored;
    all.insert(asked.begin(), asked.end());
    const auto value = [](const FactMap& facts, const std::string& name) {
        const auto found = facts.find(name);
        return found == facts.end() ? std::string("(no such fact)") : found->second;
    };
    for (const auto& [name, ignored] : all) {
        if (!stored.contains(name)) {
            ++unanswered;
            std::printf("%s\n  not asked of this card\n  asked:  %s\n", name.c_str(), ignored.c_str());
        } else if (const std::string theirs = value(stored, name), ours = value(asked, name); theirs != ours) {
            ++differing;
            std::printf("%s\n  stored: %s\n  asked:  %s\n", name.c_str(), theirs.c_str(), ours.c_str());
        }
    }
    std::printf("%zu facts, %d differ, %d were not asked of this card\n", all.size(), differing, unanswered);
    return differing;
}

int run(int count, char** arguments)
{
    std::vector<Section> sections;
    for (const auto& part :
         {tensor_load_sections(), tensor_store_sections(), barrier_sections(), cluster_sections(), matrix_sections()}) {
        sections.insert(sections.end(), part.begin(), part.end());
    }
    const bool comparing = count == 3 && std::strcmp(arguments[1], "--check") == 0;
    if (count != 1 && !comparing) {
        std::fprintf(stderr, "usage: %s [--check FILE]\n", arguments[0]);
        return 2;
    }
    FactMap stored, asked, on_purpose;
    if (comparing) {
        std::ifstream file(arguments[2]);
        for (std::string line; std::getline(file, line);) {
            take_line(line, stored);
            take_line(line, on_purpose, '~');
        }
    }
    for (const Section& section : sections) {
        const std::string text = ask(section);
        if (!comparing) {
            std::fputs(text.c_str(), stdout);
            std::fflush(stdout);
            continue;
        }
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = text.find('\n', begin);
            take_line(text.substr(begin, end - begin), asked);
            begin = end + 1;
        }
    }
    for (const auto& [name, value] : on_purpose) {
        asked.erase(name);
    }
    return comparing && (stored.empty() || compare(stored, asked) != 0) ? 1 : 0;
}

}  // namespace
}  // namespace tessera::truth

int main(int count, char** arguments) { return tessera::truth::run(count, arguments); }
