// Damage of any file of a checkpoint is found and named, by verify and by export; what is whole is exported whole.
#include "launch/verify.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "launch/command.h"
#include "launch/drill.h"
#include "launch/export.h"
#include "launch/ls.h"
#include "launch/model_file.h"
#include "schema/safetensors.h"
#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

// A source model of two tensors, 300 KiB and 2 MiB: chunks of both kinds, whole and shared.
std::string write_model(const TemporaryFolder& folder) {
  constexpr std::uint64_t small = 300 << 10;
  constexpr std::uint64_t large = 2 << 20;
  const auto header =
      safetensors::write(
          {{"a", DType::f32, {small / 4}, 0, small}, {"b", DType::u8, {2, large / 2}, small, small + large}}, {})
          .value();
  std::ofstream file(folder.file("m.safetensors"), std::ios::binary);
  file << header;
  for (std::uint64_t i = 0; i < small + large; ++i) file.put(static_cast<char>(i * 31 + i / 251));
  return folder.file("m.safetensors");
}

struct SavedModel {
  TemporaryFolder folder;
  std::string model = write_model(folder);
  std::string root = folder.file("root");

  SavedModel() {
    DrillArguments arguments;
    arguments.what = "save";
    arguments.root = root;
    arguments.model = {model};
    arguments.layout = "dp=1";
    arguments.step = 7;
    std::ostringstream out;
    const auto saved = drill(arguments, out, out);
    if (!saved) FAIL(saved.error().message);
  }

  std::string data_file() const { return root + "/data/e000001-a000001-s000007/model/0/rank-000000-0.safetensors"; }
};

struct Verified {
  int code = -1;
  std::string out;
};

Verified verified(const std::string& checkpoint, bool deep) {
  std::ostringstream out;
  const auto code = verify({checkpoint, deep, false}, out);
  return code ? Verified{*code, out.str()} : Verified{exit_code(code.error().code), code.error().message};
}

void flip(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

}  // namespace

TEST_CASE("a checkpoint that nobody touched is whole") {
  const SavedModel saved;
  CHECK(verified(saved.root, false).code == 0);
  CHECK(verified(saved.root + "@7", true).code == 0);
  CHECK(verified(saved.root + "@e000001-a000001-s000007", true).code == 0);
  CHECK(verified(saved.root + "@8", true).code == 3);
}

TEST_CASE("a flipped byte of a record is found, whichever it is") {
  const SavedModel saved;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(saved.root)) {
    const auto path = entry.path().string();
    if (!entry.is_regular_file() || path.ends_with(".safetensors")) continue;
    const auto length = entry.file_size();
    for (std::uint64_t at = 0; at < length; ++at) {
      flip(path, at);
      const auto found = verified(saved.root, false);
      INFO(path << " byte " << at << " of " << length << "\n" << found.out);
      CHECK(found.code == 1);
      flip(path, at);
    }
  }
  CHECK(verified(saved.root, true).code == 0);
}

TEST_CASE("a flipped byte of a data file is found deep, with section, tensor, box, file and chunk") {
  const SavedModel saved;
  const auto length = std::filesystem::file_size(saved.data_file());
  const auto header_bytes = length - (300 << 10) - (2 << 20);
  const auto check = [&](std::uint64_t at, const std::vector<std::string>& nouns) {
    flip(saved.data_file(), at);
    const auto found = verified(saved.root, true);
    INFO("byte " << at << "\n" << found.out);
    CHECK(found.code == 1);
    for (const auto& noun : nouns) CHECK(found.out.find(noun) != std::string::npos);
    flip(saved.data_file(), at);
  };
  check(0, {"section model", "rank-000000-0.safetensors", "header"});
  check(header_bytes - 1, {"section model", "rank-000000-0.safetensors", "header"});
  check(header_bytes, {"section model", "rank-000000-0.safetensors", "chunk 0", "a [0, 76800)", "more up to b"});
  check(header_bytes + (1 << 20) + 5, {"chunk 1", "b [0, 2)x[0, 1048576)"});
  check(length - 1, {"chunk 2", "b [0, 2)x[0, 1048576)"});
  for (std::uint64_t at = 1; at < length; at += 200'003) check(at, {"rank-000000-0.safetensors"});
  CHECK(verified(saved.root, true).code == 0);
}

TEST_CASE("a data file that is cut, longer, gone or another's is found") {
  const SavedModel saved;
  const auto content = read_file(saved.data_file());
  const auto check = [&](const std::string& noun, bool deep) {
    const auto found = verified(saved.root, deep);
    INFO(found.out);
    CHECK(found.code == 1);
    CHECK(found.out.find(noun) != std::string::npos);
    CHECK(found.out.find("rank-000000-0.safetensors") != std::string::npos);
  };
  write_file(saved.data_file(), content.substr(0, content.size() - 1));
  check("bytes long instead of", false);
  write_file(saved.data_file(), content + "x");
  check("bytes long instead of", false);
  std::filesystem::remove(saved.data_file());
  check("", false);
  std::filesystem::create_directory(saved.data_file());
  check("", false);
  std::filesystem::remove(saved.data_file());
  write_file(saved.data_file(), std::string(content.size(), 'x'));
  check("chunk 2", true);
}

TEST_CASE("a load without a committed data file is corrupt, not a search for another checkpoint") {
  const SavedModel saved;
  std::filesystem::remove(saved.data_file());
  DrillArguments arguments;
  arguments.what = "load";
  arguments.root = saved.root;
  arguments.model = {saved.model};
  arguments.layout = "dp=1";
  std::ostringstream out;
  const auto loaded = drill(arguments, out, out);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code == Code::corrupt);
  CHECK(loaded.error().message.find("rank-000000-0.safetensors") != std::string::npos);
}

TEST_CASE("an export equals the source, and a damaged checkpoint exports nothing") {
  const SavedModel saved;
  const auto target = saved.folder.file("x.safetensors");
  const auto exported = [&](const std::string& to, std::uint64_t shard_bytes = shard_bytes_default) {
    std::ostringstream out;
    const auto code = export_checkpoint({saved.root, to, "", shard_bytes, false}, out);
    return code ? *code : exit_code(code.error().code);
  };
  const auto source = ModelFile::open({saved.model}).value();
  const auto equal = [&](const std::vector<std::string>& paths) {
    const auto copy = ModelFile::open(paths).value();
    CHECK(copy->tensors().size() == source->tensors().size());
    for (const auto& spec : source->tensors()) {
      const auto a = source->bytes(spec.fqn);
      const auto b = copy->bytes(spec.fqn);
      CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
  };
  REQUIRE(exported(target) == 0);
  equal({target});
  CHECK(exported(target) == 2);  // nothing is overwritten

  const auto folder = saved.folder.file("folder");
  REQUIRE(exported(folder, 1 << 20) == 0);
  equal({folder + "/model-00001-of-00002.safetensors", folder + "/model-00002-of-00002.safetensors"});
  const auto index = read_file(folder + "/model.safetensors.index.json");
  CHECK(index.find("\"b\":\"model-00002-of-00002.safetensors\"") != std::string::npos);

  flip(saved.data_file(), std::filesystem::file_size(saved.data_file()) - 1);
  CHECK(exported(saved.folder.file("y.safetensors")) == 4);
  CHECK(!std::filesystem::exists(saved.folder.file("y.safetensors")));
  for (const auto& entry : std::filesystem::directory_iterator(saved.folder.path())) {
    CHECK(entry.path().filename().string().find("export") == std::string::npos);
  }
}

TEST_CASE("ls and inspect say what was saved") {
  const SavedModel saved;
  std::ostringstream listed;
  REQUIRE(ls({saved.root, true}, listed).value() == 0);
  CHECK(listed.str().find("\"id\":\"e000001-a000001-s000007\",\"step\":7") != std::string::npos);
  CHECK(listed.str().find("\"bytes\":2404352,") != std::string::npos);
  CHECK(listed.str().find("\"newest\":true,\"abandoned\":false") != std::string::npos);
  CHECK(listed.str().find("\"aborted\":0,\"unknown\":0") != std::string::npos);

  std::ostringstream inspected;
  REQUIRE(inspect({saved.root, "b", true}, inspected).value() == 0);
  const auto offset = std::filesystem::file_size(saved.data_file()) - (2 << 20);
  CHECK(inspected.str().find("{\"fqn\":\"b\",\"dtype\":\"u8\",\"shape\":[2,1048576],\"extents\":[{\"offsets\":[0,0],"
                             "\"sizes\":[2,1048576],\"rank\":0,\"file\":\"data/e000001-a000001-s000007/model/0/"
                             "rank-000000-0.safetensors\",\"offset_bytes\":" +
                             std::to_string(offset) + ",\"length_bytes\":2097152}]}") != std::string::npos);
  CHECK(inspected.str().find("\"fqn\":\"a\"") == std::string::npos);
}
