#include "launch/content.h"

#include <fstream>

#include "schema/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::vector<std::byte> filled(const Content& content, const TensorSpec& spec, const Held& held) {
  std::vector<std::byte> bytes(Content::held_bytes(spec, held));
  content.fill(spec, held, bytes);
  return bytes;
}

// A file of one tensor `w`, u16 [3, 4] holding 0, 1, ... 11.
std::string write_ramp(const TemporaryFolder& folder, const std::string& name) {
  const auto header = safetensors::write({{"w", DType::u16, {3, 4}, 0, 24}}, {}).value();
  std::ofstream file(folder.file(name), std::ios::binary);
  file << header;
  for (char i = 0; i < 12; ++i) file << i << '\0';
  return folder.file(name);
}

}  // namespace

TEST_CASE("made content follows the published formula") {
  // From the formula, by an independent program.
  const TensorSpec w{"w", DType::bf16, {2, 3}};
  CHECK(hex(filled(Content(nullptr, 0), w, {0, whole(w.shape), {}})) == "e164fcbe775b4741bee37cdc");
  CHECK(hex(filled(Content(nullptr, 3), w, {0, whole(w.shape), {}})) == "09dafb25fe476f676b0d9223");
  const TensorSpec state{"state.x.exp_avg", DType::f32, {2}};
  CHECK(hex(filled(Content(nullptr, 0), state, {0, whole(state.shape), {}})) == "24a6bdf35a1af9df");
}

TEST_CASE("a piece holds the bytes of its global elements") {
  const TensorSpec w{"w", DType::bf16, {2, 3}};
  const Content content(nullptr, 0);
  CHECK(hex(filled(content, w, {0, Box{{0, 1}, {2, 2}}, {}})) ==
        "fcbe775b"
        "bee37cdc");
  CHECK(hex(filled(content, w, {0, Box{{1, 0}, {1, 3}}, {}})) == "4741bee37cdc");
  CHECK(hex(filled(content, w, {0, Box{{0, 1}, {2, 2}}, Range{1, 3}})) ==
        "775b"
        "bee3");
  CHECK(filled(content, w, {0, Box{{2, 0}, {0, 3}}, {}}).empty());
  const TensorSpec scalar{"w", DType::bf16, {}};
  CHECK(hex(filled(content, scalar, {0, whole({}), {}})) == "e164");
}

TEST_CASE("the content of a file is that file's, and other tensors are made") {
  const TemporaryFolder folder;
  const auto file = ModelFile::open({write_ramp(folder, "m.safetensors")}).value();
  const TensorSpec w{"w", DType::u16, {3, 4}};
  CHECK(hex(filled(Content(file, 9), w, {0, Box{{1, 2}, {2, 2}}, {}})) == "060007000a000b00");
  const TensorSpec state{"state.x.exp_avg", DType::f32, {2}};
  CHECK(hex(filled(Content(file, 0), state, {0, whole(state.shape), {}})) == "24a6bdf35a1af9df");
}

TEST_CASE("one flipped bit anywhere in a piece is found where it is") {
  const TensorSpec w{"w", DType::f32, {5, 7}};
  const Content content(nullptr, 1);
  for (const auto& held : {Held{0, Box{{1, 2}, {3, 4}}, {}}, Held{0, whole(w.shape), Range{3, 20}}}) {
    auto bytes = filled(content, w, held);
    CHECK(!content.first_difference(w, held, bytes).has_value());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      bytes[at] ^= std::byte{4};
      CHECK(content.first_difference(w, held, bytes) == at);
      bytes[at] ^= std::byte{4};
    }
    CHECK(Content(nullptr, 2).first_difference(w, held, bytes).has_value());
  }
}

TEST_CASE("a model file that cannot be is refused by its name") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::string>& paths, Code code, const std::string& noun) {
    const auto opened = open_model(paths);
    REQUIRE(!opened.has_value());
    CHECK(opened.error().code == code);
    CHECK(opened.error().message.find(noun) != std::string::npos);
  };
  refused({}, Code::invalid, "no model");
  refused({"llama:8B", "llama:70B"}, Code::invalid, "llama:8B");
  refused({folder.file("none")}, Code::not_found, folder.file("none"));
  refused({folder.path().string()}, Code::invalid, "not a regular file");
  std::ofstream(folder.file("short")) << "1234567";
  refused({folder.file("short")}, Code::corrupt, "7 bytes");
  std::ofstream(folder.file("text")) << "this is no model file at all";
  refused({folder.file("text")}, Code::corrupt, folder.file("text"));
  const auto a = write_ramp(folder, "a.safetensors");
  const auto b = write_ramp(folder, "b.safetensors");
  refused({a, b}, Code::invalid, "tensor w");
}
