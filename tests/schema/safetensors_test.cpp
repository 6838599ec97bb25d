// Foreign safetensors headers: the files under files/ come from public bug reports; each is taken or refused as its
// table says. What is too large to keep is made here.
#include "schema/safetensors.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

struct Refused {
  std::string file;
  std::string words;  // that the message holds
};

struct Taken {
  std::string file;
  std::vector<std::string> tensors;  // in data order: name, dtype, shape, place
};

// clang-format off
const std::vector<Refused> refused_files = {
    {"0-bytes", "0 bytes is too short"},
    {"7-bytes", "7 bytes is too short"},
    {"data-cut", "'v' ends at byte 16 of only 15"},
    {"dim-negative", "'w' has the negative number -2 as a dimension"},
    {"dims-40", "'w' has more than 32 dimensions"},
    {"dtype-lower-case", "'w' has the unknown dtype 'f32'"},
    {"dtype-unknown", "'w' has the unknown dtype 'F33'"},
    {"duplicate-key", "the key 'w' stands in the header twice"},
    {"duplicate-key-same-place", "the key 'w' stands in the header twice"},
    {"hole", "'v' begins at byte 12"},
    {"hole-at-start", "'w' begins at byte 8"},
    {"json-array", "does not begin with '{'"},
    {"json-cut", "not JSON at byte 110"},
    {"length-0", "a header of 0 bytes"},
    {"length-big-endian", "a header of 7782220156096217088 bytes"},
    {"length-over-100mb", "a header of 100000001 bytes"},
    {"length-past-eof", "leaves the file of 116 bytes"},
    {"length-u64-max", "a header of 18446744073709551615 bytes"},
    {"metadata-number", "__metadata__ has the number 3 under 'step'"},
    {"not-json", "does not begin with '{'"},
    {"offset-2-to-64", "'w' has the number '18446744073709551616' as an offset"},
    {"offset-negative", "'w' has the negative number -8 as an offset"},
    {"offsets-bool", "'w' has a boolean as an offset"},
    {"offsets-float", "'w' has the number '0.0' as an offset"},
    {"offsets-nan", "not JSON at byte 57"},
    {"offsets-reversed", "'w' has the reversed data_offsets [8, 0)"},
    {"offsets-three", "'w' has more than two data_offsets"},
    {"overlap", "'v' begins at byte 4 of the data, inside"},
    {"padding-nul", "NUL"},
    {"product-wraps-to-0", "'w' has no whole number of bytes"},
    {"product-wraps-to-size", "'w' has no whole number of bytes"},
    {"second-object", "not JSON at byte 117"},
    {"shape-larger-than-data", "'w' of 4000000 bytes (f32 [1000, 1000]) has the data_offsets [0, 4)"},
    {"shape-missing", "'w' has no shape"},
    {"trailing-bytes", "cover 16 of 19 bytes"},
    {"utf8", "not JSON at byte 12"},
};

const std::vector<Taken> taken_files = {
    {"escaped-names", {"w/🧪 u8 [2] [0, 2)"}},
    {"every-dtype", {"uint64 u64 [2, 3] [0, 48)", "int64 i64 [2, 3] [48, 96)", "float64 f64 [2, 3] [96, 144)",
                     "complex64 c64 [2, 3] [144, 192)", "float32 f32 [2, 3] [192, 216)", "uint32 u32 [2, 3] [216, 240)",
                     "int32 i32 [2, 3] [240, 264)", "bfloat16 bf16 [2, 3] [264, 276)", "float16 f16 [2, 3] [276, 288)",
                     "uint16 u16 [2, 3] [288, 300)", "int16 i16 [2, 3] [300, 312)",
                     "float8_e8m0fnu f8_e8m0fnu [2, 3] [312, 318)", "float8_e4m3fn f8_e4m3fn [2, 3] [318, 324)",
                     "float8_e5m2 f8_e5m2 [2, 3] [324, 330)", "int8 i8 [2, 3] [330, 336)", "uint8 u8 [2, 3] [336, 342)",
                     "bool bool [2, 3] [342, 348)"}},
    {"extra-field", {"w f32 [2] [0, 8)"}},
    {"keys-not-in-data-order", {"c u8 [5] [0, 5)", "b u8 [4] [5, 9)", "a u8 [3] [9, 12)"}},
    {"metadata-unicode", {"w f32 [2, 2] [0, 16)", "b f16 [3] [16, 22)"}},
    {"no-tensors", {}},
    {"odd-names", {"a/b u8 [2] [0, 2)", "../up u8 [2] [2, 4)", "new\nline u8 [2] [4, 6)", "quote\" u8 [2] [6, 8)",
                   "权重 u8 [2] [8, 10)", "e\xCC\x81 u8 [2] [10, 12)", "\xC3\xA9 u8 [2] [12, 14)",
                   "w@0+2 u8 [2] [14, 16)", std::string(300, 'n') + " u8 [2] [16, 18)", " u8 [2] [18, 20)"}},
    {"only-empty", {"a bf16 [0, 4] [0, 0)", "b bool [0] [0, 0)"}},
    {"padding-odd", {"w f32 [2, 2] [0, 16)", "b f16 [3] [16, 22)"}},
    {"padding-tab-newline", {"w f32 [2, 2] [0, 16)", "b f16 [3] [16, 22)"}},
    {"zero-sized", {"a f32 [0] [0, 0)", "b f32 [3, 0, 2] [0, 0)", "w u8 [2] [0, 2)", "z i64 [0, 7] [2, 2)"}},
};
// clang-format on

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  REQUIRE(stream.good());
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::filesystem::path file_path(const std::string& name) {
  return std::filesystem::path(VCKPT_TEST_DATA) / "files" / (name + ".safetensors");
}

// Reads a whole file as its users do: the length word, then the header.
Result<safetensors::Header> parse_file(std::string_view file) {
  const auto bytes = std::as_bytes(std::span(file));
  VCKPT_TRY(const auto length,
            safetensors::header_bytes(bytes.first(std::min<std::size_t>(8, bytes.size())), bytes.size()));
  return safetensors::parse(bytes.first(length), bytes.size());
}

std::string file_of(const std::string& json, std::size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>((json.size() >> (8 * i)) & 0xFF));
  return file + json + std::string(data_bytes, '\x5A');
}

std::string one(const std::string& fields) { return "{\"w\":{" + fields + "}}"; }

std::vector<std::string> lines(const std::vector<safetensors::Tensor>& tensors) {
  std::vector<std::string> out;
  for (const auto& t : tensors) {
    out.push_back(to_string(TensorSpec{t.name, t.dtype, t.shape}) + " " + to_string(Range{t.begin_bytes, t.end_bytes}));
  }
  return out;
}

void check_refused(std::string_view file, const std::string& words) {
  const auto header = parse_file(file);
  REQUIRE_FALSE(header.has_value());
  CHECK(header.error().code == Code::corrupt);
  INFO("message: " << header.error().message.substr(0, 500) << "\nexpected: " << words);
  CHECK(header.error().message.find(words) != std::string::npos);
}

TEST_CASE("every bad file is refused with what is wrong with it", "[safetensors]") {
  for (const auto& [file, words] : refused_files) {
    INFO(file);
    check_refused(read_file(file_path("st-bad-" + file)), words);
  }
}

TEST_CASE("every good file is taken with exactly its tensors", "[safetensors]") {
  for (const auto& [file, tensors] : taken_files) {
    INFO(file);
    const auto bytes = read_file(file_path("st-" + file));
    const auto header = parse_file(bytes);
    if (!header) FAIL(header.error().message);
    CHECK(lines(header->tensors) == tensors);
    CHECK(header->header_bytes + header->data_bytes == bytes.size());
  }
}

TEST_CASE("no file is left out of the tables", "[safetensors]") {
  std::set<std::string> expected;
  for (const auto& row : refused_files) expected.insert("st-bad-" + row.file);
  for (const auto& row : taken_files) expected.insert("st-" + row.file);
  std::set<std::string> present;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(VCKPT_TEST_DATA) / "files")) {
    const std::string stem = entry.path().stem().string();
    if (stem.starts_with("st-")) present.insert(stem);
  }
  CHECK(present == expected);
}

TEST_CASE("metadata is read", "[safetensors]") {
  const auto header = parse_file(read_file(file_path("st-metadata-unicode")));
  REQUIRE(header.has_value());
  CHECK(header->metadata ==
        std::map<std::string, std::string>{{"format", "pt"}, {"note", "café 🧪"}, {"empty", ""}});
}

TEST_CASE("large headers are taken, or refused without great cost", "[safetensors]") {
  std::string scalars = "{";
  for (int i = 0; i < 5000; ++i) {
    scalars += (i == 0 ? "" : ",") +
               ("\"s" + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[") +
               std::to_string(4 * i) + "," + std::to_string(4 * i + 4) + "]}";
  }
  const auto header = parse_file(file_of(scalars + "}", 20'000));
  REQUIRE(header.has_value());
  CHECK(header->tensors.size() == 5000);
  CHECK(header->tensors[4999] == safetensors::Tensor{"s4999", DType::f32, {}, 19'996, 20'000});

  std::string padded = one(R"("dtype":"U8","shape":[8],"data_offsets":[0,8])");
  padded.resize(100'000, ' ');
  CHECK(parse_file(file_of(padded, 8)).has_value());

  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  check_refused(file_of(one(R"("dtype":"U8","data_offsets":[0,8],"shape":)" + deep), 8),
                "'w' has an array as a dimension");
  check_refused(file_of(one(R"("dtype":"U8","shape":[8],"data_offsets":[0,8],"x":)" + deep), 8), "nested too deeply");
  check_refused(file_of(one(R"("dtype":"U8","shape":[8],"data_offsets":[0,8],"x":)" + std::string(100'000, '[')), 8),
                "nested too deeply");
  check_refused(file_of("{\"" + std::string(100'000, 'n') + "\":3}", 0), "nnn...' is the number 3");

  std::string same = "{";
  for (int i = 0; i < 1000; ++i) {
    same +=
        (i == 0 ? "" : ",") + ("\"t" + std::to_string(i) + R"(":{"dtype":"U8","shape":[64],"data_offsets":[0,64]})");
  }
  check_refused(file_of(same + "}", 64), "begins at byte 0 of the data, inside");
}

TEST_CASE("further breaches of the format are refused", "[safetensors]") {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  CHECK(parse_file(file_of(one(good), 8)).has_value());
  const auto with_shape = [](const std::string& shape) {
    return file_of(one(R"("dtype":"F32","data_offsets":[0,8],"shape":)" + shape), 8);
  };
  check_refused(with_shape("[2.0]"), "'w' has the number '2.0' as a dimension");
  check_refused(with_shape("[2e0]"), "'w' has the number '2e0' as a dimension");
  check_refused(with_shape("[1e400]"), "not JSON");
  check_refused(with_shape("[-0]"), "'w' has the negative number 0 as a dimension");
  check_refused(with_shape("[02]"), "not JSON");
  check_refused(with_shape("[\"2\"]"), "'w' has a string as a dimension");
  check_refused(with_shape("[null]"), "'w' has null as a dimension");
  check_refused(with_shape("[2,]"), "not JSON");
  check_refused(with_shape("2"), "'w' has the number 2 as its shape");
  check_refused(with_shape("{}"), "'w' has an object as its shape");
  check_refused(with_shape("[18446744073709551615,0]"), "'w' of 0 bytes");
  check_refused(with_shape("[0,9223372036854775808,9223372036854775808]"), "'w' has no whole number of bytes");
  check_refused(with_shape("[9223372036854775807]"), "'w' has no whole number of bytes");
  check_refused(file_of(one(good + R"(,"shape":[2])"), 8), "'w' has the field 'shape' twice");
  check_refused(file_of(one(good + R"(,"x":1,"x":1)"), 8), "'w' has the field 'x' twice");
  check_refused(file_of(one(R"("shape":[2],"data_offsets":[0,8])"), 8), "'w' has no dtype");
  check_refused(file_of(one(R"("shape":[2],"dtype":"F32")"), 8), "'w' has no data_offsets");
  check_refused(file_of(one(R"("shape":[2],"dtype":"F32","data_offsets":[0])"), 8),
                "'w' has fewer than two data_offsets");
  check_refused(file_of(one(R"("shape":[2],"dtype":7)"), 8), "'w' has the number 7 as its dtype");
  check_refused(file_of(R"({"w":[]})", 0), "'w' is an array instead of an object");
  check_refused(file_of(R"({"__metadata__":{"a":"1","a":"1"}})", 0), "__metadata__ has the key 'a' twice");
  check_refused(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' stands in the header twice");
  check_refused(file_of(R"({"__metadata__":null})", 0), "__metadata__ is null instead of an object");
  check_refused(file_of(R"({"__metadata__":{"a":{"b":"c"}}})", 0), "__metadata__ has an object under 'a'");
  check_refused(file_of(" {}", 0), "does not begin with '{'");
  check_refused(file_of("\xEF\xBB\xBF{}", 0), "does not begin with '{'");
  check_refused(file_of("{} x", 0), "not JSON");
  check_refused(file_of("{}/**/", 0), "not JSON");
  check_refused(file_of(R"({"\ud800":{}})", 0), "not JSON");
  check_refused(file_of(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
                "'w' has no whole number of bytes");
  CHECK(parse_file(file_of(R"({"w":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", 3)).has_value());
  CHECK(parse_file(file_of(one(good + R"(,"x":[[1,{"y":null}],"z"],"v":{},"u":true)"), 8)).has_value());
}

TEST_CASE("32 dimensions are the most", "[safetensors]") {
  const auto with_dims = [](std::size_t count) {
    std::string shape = "[1";
    for (std::size_t d = 1; d < count; ++d) shape += ",1";
    return file_of(one(R"("dtype":"U8","data_offsets":[0,1],"shape":)" + shape + "]"), 1);
  };
  CHECK(parse_file(with_dims(32)).has_value());
  check_refused(with_dims(33), "'w' has more than 32 dimensions");
}

TEST_CASE("a header that is cut off or too long for its length word is refused", "[safetensors]") {
  const auto file = file_of(one(R"("dtype":"U8","shape":[8],"data_offsets":[0,8])"), 8);
  const auto bytes = std::as_bytes(std::span(file));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length);
    CHECK(safetensors::parse(bytes.first(length), bytes.size()).has_value() == (length == bytes.size() - 8));
  }
}

TEST_CASE("what is written is read back, and its data begins at the alignment", "[safetensors]") {
  const std::vector<safetensors::Tensor> tensors = {{"a\"\\\n\x01", DType::c64, {2}, 0, 16},
                                                    {"empty", DType::bf16, {0, 3}, 16, 16},
                                                    {"权重", DType::f4, {2, 3}, 16, 19},
                                                    {"scalar", DType::u8, {}, 19, 20}};
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"q\"", "\t"}};
  for (const std::uint64_t alignment : {1, 8, 4096}) {
    const auto header = safetensors::write(tensors, metadata, alignment);
    REQUIRE(header.has_value());
    CHECK(header->size() % alignment == 0);
    const auto parsed = parse_file(*header + std::string(20, 'd'));
    if (!parsed) FAIL(parsed.error().message);
    CHECK(parsed->tensors == tensors);
    CHECK(parsed->metadata == metadata);
    CHECK(parsed->header_bytes == header->size());
  }
}

TEST_CASE("what is no safetensors file is not written", "[safetensors]") {
  using Tensors = std::vector<safetensors::Tensor>;
  for (const Tensors& tensors :
       {Tensors{{"w", DType::u8, {8}, 1, 9}}, Tensors{{"w", DType::u8, {8}, 0, 7}},
        Tensors{{"w", DType::i4, {8}, 0, 4}}, Tensors{{"w", DType::u8, {1}, 0, 1}, {"w", DType::u8, {1}, 1, 2}},
        Tensors{{"__metadata__", DType::u8, {1}, 0, 1}}, Tensors{{"w\xFF", DType::u8, {1}, 0, 1}},
        Tensors{{"w", DType::f4, {1}, 0, 1}}}) {
    INFO(lines(tensors).front());
    const auto header = safetensors::write(tensors, {});
    REQUIRE_FALSE(header.has_value());
    CHECK(header.error().code == Code::invalid);
  }
}

TEST_CASE("a header has at most 100 million bytes, padding included", "[safetensors]") {
  const auto most = safetensors::write({}, {}, 8 + safetensors::header_length_max);
  REQUIRE(most.has_value());
  CHECK(most->size() == 8 + safetensors::header_length_max);
  const auto over = safetensors::write({}, {}, 9 + safetensors::header_length_max);
  REQUIRE_FALSE(over.has_value());
  CHECK(over.error().code == Code::exhausted);
}

TEST_CASE("a data file holds pieces by their names, and types that the format lacks as bytes", "[safetensors]") {
  const std::vector<TensorSpec> specs = {{"c", DType::c128, {2, 3}},
                                         {"cs", DType::c128, {}},
                                         {"f", DType::f4, {3}},
                                         {"i", DType::i4, {2, 4}},
                                         {"w", DType::f32, {4, 6}}};
  const auto placed = place_pieces(
      specs, {{0, whole({2, 3})}, {1, whole({})}, {2, whole({3})}, {3, {{0, 2}, {2, 2}}}, {4, {{2, 0}, {2, 6}}}});
  const auto header = safetensors::write_data_file_header(specs, placed);
  REQUIRE(header.has_value());
  CHECK(header->size() == 4096);
  const auto parsed = parse_file(*header + std::string(data_bytes(placed), 'd'));
  if (!parsed) FAIL(parsed.error().message);
  CHECK(lines(parsed->tensors) == std::vector<std::string>{"c u8 [2, 48] [0, 96)", "cs u8 [16] [96, 112)",
                                                           "w@2x0+2x6 f32 [2, 6] [112, 160)", "f u8 [2] [160, 162)",
                                                           "i@0x2+2x2 u8 [2, 1] [162, 164)"});
  CHECK(parsed->metadata == std::map<std::string, std::string>{{"vckpt.dtype:c", "c128"},
                                                               {"vckpt.dtype:cs", "c128"},
                                                               {"vckpt.dtype:f", "f4"},
                                                               {"vckpt.dtype:i@0x2+2x2", "i4"}});
}

}  // namespace
}  // namespace vckpt
