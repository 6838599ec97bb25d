#include "launch/wait.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "launch/command.h"
#include "launch/root.h"
#include "schema/names.h"

namespace vckpt::launch {

namespace {

using Time = std::chrono::steady_clock;

constexpr std::chrono::milliseconds poll_interval{500};

class Watch {
 public:
  Watch(Root& root, const WaitArguments& arguments) : root_(root), arguments_(arguments) {}

  // Looks once; nothing when nothing newer is there. The catalog is read only when the names of decisions have changed.
  Result<std::optional<Decision>> look() {
    VCKPT_TRY(auto names, root_.storage().list(std::string(names::decisions)));
    if (looked_ && names == names_) return std::optional<Decision>();
    VCKPT_TRY(const auto catalog, root_.catalog());
    names_ = std::move(names);
    const auto* newest = catalog.newest();
    const bool first = !std::exchange(looked_, true);
    if (first && newest != nullptr) before_ = newest->id;
    if (newest == nullptr || !newer(*newest)) return std::optional<Decision>();
    return std::optional<Decision>(*newest);
  }

 private:
  bool newer(const Decision& newest) const {
    return arguments_.after ? *arguments_.after < newest.id.step.value : !before_ || *before_ < newest.id;
  }

  Root& root_;
  const WaitArguments& arguments_;
  bool looked_ = false;
  std::vector<StorageEntry> names_;
  std::optional<CheckpointId> before_;
};

void print(const Root& root, const Decision& decision, const WaitArguments& arguments, std::ostream& out) {
  if (!arguments.json) {
    out << decision.id.name() << ": step " << decision.id.step.value << ", " << decision.world_size << " ranks\n";
    return;
  }
  Json json;
  json.object().member("root", root.path()).member("id", decision.id.name()).member("step", decision.id.step.value);
  json.member("ranks", decision.world_size).member("committed_unix_s", decision.decided_unix_s).key("parent");
  decision.parent ? json.value(decision.parent->name()) : json.null();
  json.end();
  out << json.text() << '\n';
}

}  // namespace

Result<int> wait(const WaitArguments& arguments, std::ostream& out) {
  const auto until =
      Time::now() + std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(arguments.timeout_s));
  VCKPT_TRY(const auto root, Root::open(arguments.root));
  Watch watch(*root, arguments);
  for (;;) {
    VCKPT_TRY(const auto found, watch.look());
    if (found) {
      print(*root, *found, arguments, out);
      return exit_ok;
    }
    const auto now = Time::now();
    if (arguments.timeout_s > 0 && until <= now) {
      return unavailable(root->path() + ": nothing newer" +
                         (arguments.after ? " than step " + std::to_string(*arguments.after) : "") +
                         " was committed within " + seconds_text(arguments.timeout_s));
    }
    const Time::duration rest = arguments.timeout_s > 0 ? until - now : poll_interval;
    std::this_thread::sleep_for(std::min<Time::duration>(poll_interval, rest));
  }
}

}  // namespace vckpt::launch
