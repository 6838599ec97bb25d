// A whole checkpoint, written by the codec, read back by reader.py: a program of its own that knows only the text of
// schema/README.md.
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "schema/codec.h"
#include "schema/names.h"
#include "schema/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace vckpt {
namespace {

namespace fs = std::filesystem;

struct Ran {
  int status = -1;
  std::string output;  // standard error after standard output
};

Ran run_reader(const std::vector<std::string>& arguments) {
  std::string command =
      std::string("PYTHONDONTWRITEBYTECODE=1 '") + VCKPT_PYTHON + "' '" + VCKPT_TEST_DATA + "/reader.py'";
  for (const auto& argument : arguments) command += " '" + argument + "'";
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ran ran;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) ran.output.append(buffer, count);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

void write_file(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void write_file(const fs::path& path, const Bytes& bytes) {
  write_file(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// The bytes of a box out of the bytes of its tensor, one after another.
std::string cut_out(const TensorSpec& spec, const Box& box, const std::string& content) {
  const Dims shape = to_byte_shape(spec);
  const Box bytes = to_byte_box(spec, box);
  std::string out;
  Dims at = bytes.offsets;
  for (std::uint64_t n = elements(bytes); n > 0; --n) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) index = index * shape[d] + at[d];
    out.push_back(content[index]);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < bytes.offsets[d] + bytes.sizes[d]) break;
      at[d] = bytes.offsets[d];
    }
  }
  return out;
}

SavePlan example_plan() {
  SectionPlan model{"model",
                    {{"@odd", DType::i4, {3, 3}},
                     {"__metadata__", DType::u8, {4}},
                     {"c", DType::c128, {2, 3}},
                     {"cube", DType::f16, {2, 3, 4}},
                     {"even", DType::i4, {4, 4}},
                     {"none", DType::f32, {0, 3}},
                     {"scalar", DType::bf16, {}},
                     {"six", DType::f6_e2m3, {1}},
                     {"w", DType::f32, {5, 6}}},
                    {},
                    {}};
  model.bodies.push_back(
      {{Entry{8, std::nullopt, {{0, 2, 0}}, std::nullopt}, Entry{1, std::nullopt, {{0, 2, 0}}, {}}}});
  model.ranks.push_back(
      {0, {0}, {{0, whole({3, 3})}, {3, {{0, 0, 0}, {2, 1, 4}}}, {4, {{0, 0}, {4, 2}}}, {6, {}}, {7, whole({1})}}});
  model.ranks.push_back(
      {0, {1}, {{2, whole({2, 3})}, {3, {{0, 1, 1}, {2, 2, 3}}}, {3, {{0, 1, 0}, {2, 2, 1}}}, {4, {{0, 2}, {4, 2}}}}});
  SectionPlan optimizer{"optimizer", {{"m", DType::u8, {chunk_bytes + 1000}}}, {}, {RankOwnership{}, RankOwnership{}}};
  optimizer.ranks[1].pieces = {{0, whole({chunk_bytes + 1000})}};
  return {{model, optimizer}};
}

// A root with one whole checkpoint and the decisions of others.
class Root {
 public:
  Root() {
    std::mt19937_64 random(42);
    for (const auto& section : plan.sections) {
      for (const auto& spec : section.tensors) {
        std::string& bytes = content[section.section + "/" + spec.fqn];
        bytes.resize(*shape_bytes(spec.dtype, spec.shape));
        for (auto& byte : bytes) byte = static_cast<char>(random());
      }
      for (std::uint32_t rank = 0; rank < section.ranks.size(); ++rank) write_data(section, Rank{rank});
    }
    write_records();
  }

  std::string text() const { return path_.string(); }
  fs::path data_file(const std::string& section, std::uint32_t rank) const {
    return path_ / names::data_file({id, section, Rank{rank}, 0});
  }

  const CheckpointId id{Epoch{2}, Attempt{1}, Step{5}};
  const CheckpointId first{Epoch{1}, Attempt{1}, Step{4}};
  const CheckpointId abandoned{Epoch{1}, Attempt{2}, Step{900}};
  const SavePlan plan = example_plan();
  std::map<std::string, std::string> content;  // by section/fqn
  std::uint64_t file_bytes = 0;

 private:
  void write_data(const SectionPlan& section, Rank rank) {
    const auto placed = file_pieces(section, rank);
    if (placed.empty()) return;
    const auto header = safetensors::write_data_file_header(section.tensors, placed);
    REQUIRE(header.has_value());
    std::string data;
    for (const auto& piece : placed) {
      const auto& spec = section.tensors[piece.tensor];
      data += cut_out(spec, piece.box, content[section.section + "/" + spec.fqn]);
    }
    const FilePlace place{id, section.section, rank, 0};
    FileRecord file{section.section,
                    rank,
                    0,
                    0,
                    header->size(),
                    data.size(),
                    chunk_digest(place, header_chunk, as_bytes(*header)),
                    {}};
    for (std::uint64_t chunk = 0; chunk * chunk_bytes < data.size(); ++chunk) {
      file.chunk_digests.push_back(chunk_digest(place, chunk, as_bytes(data.substr(chunk * chunk_bytes, chunk_bytes))));
    }
    files_.push_back(file);
    file_bytes += header->size() + data.size();
    write_file(path_ / names::data_file(place), *header + data);
  }

  void write_decision(const CheckpointId& which, Verdict verdict, std::optional<CheckpointId> parent,
                      std::vector<SegmentReference> segments) {
    Decision decision;
    decision.id = which;
    decision.verdict = verdict;
    decision.decided_by = which.epoch;
    decision.nonce = nonce_;
    decision.parent = parent;
    if (verdict == Verdict::abort) decision.reason = "a rank was lost";
    decision.plan = xxh3_128(encode(plan));
    decision.world_size = 2;
    decision.segments = std::move(segments);
    write_file(path_ / names::decision(which), encode(decision));
  }

  void write_records() {
    const Bytes encoded_plan = encode(plan);
    write_file(path_ / names::plan(xxh3_128(encoded_plan)), encoded_plan);
    std::vector<SegmentReference> references;
    for (std::uint32_t index = 0; index < files_.size(); ++index) {
      const Bytes segment = encode(ManifestSegment{
          id, xxh3_128(encoded_plan), 2, index, static_cast<std::uint32_t>(files_.size()), "", {files_[index]}, {}});
      references.push_back({xxh3_128(segment), segment.size()});
      write_file(path_ / names::segment(id, id.epoch, nonce_, index), segment);
    }
    write_decision(first, Verdict::commit, std::nullopt, {});
    write_decision(abandoned, Verdict::commit, first, {});
    write_decision({Epoch{2}, Attempt{2}, Step{6}}, Verdict::abort, std::nullopt, {});
    write_decision(id, Verdict::commit, first, references);
    write_file(path_ / "decisions" / ".temporary", std::string_view("half a rec"));
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path();
  const Nonce nonce_{0x1234567890ABCDEF};
  std::vector<FileRecord> files_;
};

TEST_CASE("reader.py lists checkpoints with their lineage", "[reader]") {
  const Root root;
  const auto ran = run_reader({"ls", root.text()});
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  const auto row = [](const CheckpointId& id, nlohmann::json parent, const char* line) {
    return nlohmann::json{{"id", id.name()}, {"step", id.step.value}, {"parent", std::move(parent)}, {"line", line}};
  };
  CHECK(nlohmann::json::parse(ran.output) == nlohmann::json{row(root.first, nullptr, "current"),
                                                            row(root.abandoned, root.first.name(), "abandoned"),
                                                            row(root.id, root.first.name(), "current")});
}

TEST_CASE("reader.py reads every tensor as it was", "[reader]") {
  const Root root;
  const auto listed = run_reader({"tensors", root.text(), root.id.name()});
  INFO(listed.output);
  REQUIRE(listed.status == 0);
  nlohmann::json expected = nlohmann::json::array();
  for (const auto& section : root.plan.sections) {
    for (const auto& spec : section.tensors) {
      expected.push_back(
          {{"section", section.section}, {"fqn", spec.fqn}, {"dtype", to_string(spec.dtype)}, {"shape", spec.shape}});
      INFO(spec.fqn);
      const auto dumped = run_reader({"dump", root.text(), root.id.name(), section.section, spec.fqn});
      CHECK(dumped.status == 0);
      const bool equal = dumped.output == root.content.at(section.section + "/" + spec.fqn);
      CHECK(equal);
    }
  }
  CHECK(nlohmann::json::parse(listed.output) == expected);
}

TEST_CASE("reader.py verifies every byte", "[reader]") {
  const Root root;
  const auto verify = [&] { return run_reader({"verify", root.text(), root.id.name()}); };
  const auto good = verify();
  INFO(good.output);
  REQUIRE(good.status == 0);
  CHECK(nlohmann::json::parse(good.output) == nlohmann::json{{"files", 3}, {"bytes", root.file_bytes}});

  const auto flip = [](const fs::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(at);
    file.put(byte);
  };
  const auto optimizer = root.data_file("optimizer", 1);
  for (const std::uint64_t at : {std::uint64_t{20}, std::uint64_t{4096}, 4096 + chunk_bytes + 999}) {
    INFO("byte " << at);
    flip(optimizer, static_cast<std::streamoff>(at));
    const auto bad = verify();
    CHECK(bad.status == 1);
    CHECK(bad.output.starts_with("corrupt: " + optimizer.string() + ": chunk "));
    flip(optimizer, static_cast<std::streamoff>(at));
  }
  CHECK(verify().status == 0);
  fs::resize_file(optimizer, fs::file_size(optimizer) - 1);
  CHECK(verify().output == "corrupt: " + optimizer.string() + "\n");
}

TEST_CASE("reader.py refuses what was not committed", "[reader]") {
  const Root root;
  const auto ran = run_reader({"tensors", root.text(), CheckpointId{Epoch{2}, Attempt{2}, Step{6}}.name()});
  CHECK(ran.status == 1);
  CHECK(ran.output == "corrupt: e000002-a000002-s000006 was not committed\n");
}

}  // namespace
}  // namespace vckpt
