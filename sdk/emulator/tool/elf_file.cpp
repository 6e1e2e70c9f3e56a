#include "tool/elf_file.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace tessera::emulator {

namespace {

class Image {
public:
    explicit Image(std::string bytes) : bytes_(std::move(bytes)) {}

    template <class Struct>
    [[nodiscard]] std::optional<Struct> at(std::uint64_t offset) const
    {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof(Struct)) {
            return std::nullopt;
        }
        Struct value;
        std::memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }

    [[nodiscard]] std::string text_at(std::uint64_t offset) const
    {
        if (offset >= bytes_.size()) {
            return {};
        }
        const std::size_t end = bytes_.find('\0', offset);
        return bytes_.substr(offset, end == std::string::npos ? end : end - offset);
    }

private:
    std::string bytes_;
};

std::vector<Elf64_Shdr> sections_of(const Image& image, const Elf64_Ehdr& header)
{
    std::vector<Elf64_Shdr> sections;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        if (const auto section = image.at<Elf64_Shdr>(header.e_shoff + std::uint64_t{i} * header.e_shentsize)) {
            sections.push_back(*section);
        }
    }
    return sections;
}

void read_dynamic(const Image& image, const Elf64_Shdr& dynamic, const Elf64_Shdr& strings, ElfFile& file)
{
    file.is_dynamic = true;
    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Dyn) <= dynamic.sh_size; offset += sizeof(Elf64_Dyn)) {
        const auto entry = image.at<Elf64_Dyn>(dynamic.sh_offset + offset);
        if (!entry || entry->d_tag == DT_NULL) {
            return;
        }
        if (entry->d_tag == DT_NEEDED) {
            file.needed.push_back(image.text_at(strings.sh_offset + entry->d_un.d_val));
        } else if (entry->d_tag == DT_RPATH) {
            file.rpath = image.text_at(strings.sh_offset + entry->d_un.d_val);
        }
    }
}

}  // namespace

ElfFile read_elf(const std::string& path)
{
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        throw std::runtime_error(fmt::format("{} cannot be read", path));
    }
    const Image image(std::string(std::istreambuf_iterator<char>(stream), {}));
    ElfFile file;
    const auto header = image.at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
        return file;
    }
    file.is_elf = true;
    const std::vector<Elf64_Shdr> sections = sections_of(image, *header);
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type == SHT_DYNAMIC && section.sh_link < sections.size()) {
            read_dynamic(image, section, sections[section.sh_link], file);
        }
        if (header->e_shstrndx < sections.size() &&
            image.text_at(sections[header->e_shstrndx].sh_offset + section.sh_name) == ".nv_fatbin") {
            file.has_fatbin = true;
        }
    }
    return file;
}

}  // namespace tessera::emulator
