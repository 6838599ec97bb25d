// Bad input to every command: one line that says what and which, the exit code that goes with it, and nothing half
// made.
#include <filesystem>

#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

void refused(const std::vector<std::string>& arguments, int code, const std::string& noun,
             const Environment& environment = {}) {
  const auto ran = vckpt_command(arguments, environment);
  std::string line;
  for (const auto& argument : arguments) line += argument + " ";
  INFO(line << "\nstdout: " << ran.out << "\nstderr: " << ran.err);
  CHECK(ran.code == code);
  CHECK(one_line(ran.err));
  CHECK(ran.err.find(noun) != std::string::npos);
  CHECK(ran.out.empty());
}

std::vector<std::string> drill_load(const std::string& root) {
  return {"drill", "load", "--root", root, "--model", "llama:tiny", "--layout", "dp=1"};
}

bool no_entries(const TemporaryFolder& folder) { return std::filesystem::is_empty(folder.path()); }

}  // namespace

TEST_CASE("usage errors are one line and exit code 2") {
  refused({}, 2, "subcommand");
  refused({"frobnicate"}, 2, "frobnicate");
  refused({"ls"}, 2, "root");
  refused({"ls", "a", "b"}, 2, "b");
  refused({"ls", "--loud", "a"}, 2, "--loud");
  refused({"plan", "--model", "llama:8B"}, 2, "--layout");
  refused({"run", "-n", "two", "--root", "r", "--", "true"}, 2, "two");
  refused({"run", "-n", "-1", "--root", "r", "--", "true"}, 2, "-1");
}

TEST_CASE("a root that is not there is not found") {
  const TemporaryFolder folder;
  const auto root = folder.file("none");
  refused({"ls", root}, 3, root);
  refused({"inspect", root}, 3, root);
  refused({"verify", root}, 3, root);
  refused({"verify", root + "@7", "--deep"}, 3, root);
  refused({"export", root, folder.file("out")}, 3, root);
  refused(drill_load(root), 3, root);
  CHECK(no_entries(folder));
}

TEST_CASE("a folder that never was a root is not found") {
  const TemporaryFolder folder;
  const auto root = folder.path().string();
  refused({"ls", root}, 3, root);
  refused({"inspect", root}, 3, root);
  refused({"verify", root}, 3, root);
  CHECK(no_entries(folder));
}

TEST_CASE("a file for a root is invalid") {
  const TemporaryFolder folder;
  const auto root = folder.file("file");
  write_file(root, "not a root");
  refused({"ls", root}, 2, root);
  refused({"inspect", root}, 2, root);
  refused({"verify", root}, 2, root);
  refused({"export", root, folder.file("out")}, 2, root);
  refused(drill_load(root), 2, root);
  refused({"drill", "save", "--root", root, "--model", "llama:tiny", "--layout", "dp=1"}, 2, root);
  CHECK(read_file(root) == "not a root");
  CHECK(!std::filesystem::exists(folder.file("out")));
}

TEST_CASE("a layout that makes no sense, or does not fit model or job, is invalid and leaves no root") {
  const TemporaryFolder folder;
  const auto root = folder.file("root");
  const auto save = [&](const char* layout, const char* model = "llama:tiny") {
    return std::vector<std::string>{"drill", "save", "--root", root, "--model", model, "--layout", layout};
  };
  refused(save("tp=0"), 2, "tp=0");
  refused(save("tp=3"), 2, "3 ranks, the job has 1");
  refused(save("zp=1"), 2, "'zp'");
  refused(save("dp=1", "llama:9000B"), 2, "llama:9000B");
  refused(save("dp=1", "/nowhere/m.safetensors"), 3, "/nowhere/m.safetensors");
  refused({"drill", "frob", "--root", root, "--model", "llama:tiny", "--layout", "dp=1"}, 2, "frob");
  refused({"drill", "save", "--root", root, "--model", "llama:tiny", "--layout", "dp=1", "--optimizer", "sgd"}, 2,
          "sgd");
  refused({"drill", "save", "--root", root, "--model", "llama:tiny", "--layout", "dp=1", "--die", "0@noon"}, 2,
          "0@noon");
  refused({"plan", "--model", "llama:tiny", "--layout", "tp=3"}, 2, "8 heads");
  refused({"plan", "--model", "llama:tiny", "--layout", "pp=9"}, 2, "8 layers");
  refused({"plan", "--model", "llama:tiny", "--layout", "dp=2", "--to", "dp=4,ep=3"}, 2, "ep=3");
  refused({"plan", "--model", "llama:tiny", "--layout", "dp=2", "--optimizer", "sgd"}, 2, "sgd");
  CHECK(no_entries(folder));
}

TEST_CASE("a job that the environment describes wrongly is invalid") {
  const TemporaryFolder folder;
  const std::vector<std::string> save = {"drill",   "save",       "--root",   folder.file("r"),
                                         "--model", "llama:tiny", "--layout", "dp=2"};
  refused(save, 2, "RANK='x'", {{"RANK", "x"}, {"WORLD_SIZE", "2"}});
  refused(save, 2, "WORLD_SIZE=''", {{"RANK", "0"}, {"WORLD_SIZE", ""}});
  refused(save, 2, "RANK=2 is not below WORLD_SIZE=2", {{"RANK", "2"}, {"WORLD_SIZE", "2"}});
  refused(save, 2, "VCKPT_STAGING_BYTES='2G'", {{"VCKPT_STAGING_BYTES", "2G"}});
  refused(save, 2, "VCKPT_STAGING_BYTES=3 is too little for 4 ranks",
          {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"VCKPT_STAGING_BYTES", "3"}});
  refused(save, 2, "LOCAL_WORLD_SIZE='x'", {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "x"}});
  CHECK(no_entries(folder));
}

TEST_CASE("run refuses what it cannot start") {
  const TemporaryFolder folder;
  const auto root = folder.file("root");
  refused({"run", "-n", "0", "--root", root, "--", "true"}, 2, "0 ranks");
  refused({"run", "-n", "100000", "--root", root, "--", "true"}, 2, "100000 ranks");
  refused({"run", "-n", "1", "--root", root}, 2, "no program");
  refused({"run", "-n", "1", "--root", root, "--"}, 2, "no program");
  refused({"run", "-n", "1", "--root", root, "--", "/nowhere/program"}, 3, "/nowhere/program");
  refused({"run", "-n", "1", "--root", root, "--", folder.path().string()}, 2, folder.path().string());
  CHECK(no_entries(folder));
}

TEST_CASE("a coordinator that cannot start is told in one line") {
  const TemporaryFolder folder;
  write_file(folder.file("file"), "not a root");
  refused({"run", "-n", "2", "--root", folder.file("file"), "--", "true"}, 2, folder.file("file"));
  refused({"run", "-n", "2", "--root", folder.file("file") + "/below", "--", "true"}, 2, folder.file("file"));
  CHECK(read_file(folder.file("file")) == "not a root");
}

TEST_CASE("a name of a checkpoint that is neither step nor id is invalid") {
  const TemporaryFolder folder;
  refused({"inspect", folder.path().string() + "@newest"}, 2, "'newest'");
  refused({"inspect", folder.path().string() + "@-1"}, 2, "'-1'");
  refused({"inspect", ""}, 2, "empty name");
}
