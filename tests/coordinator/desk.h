// The coordinator's logic on a desk: the test tells it events, and storage, planner and timers answer from plain values
// here, unless the test holds an effect back or makes it fail.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "tests/support/catch.h"

namespace vckpt::coordinator {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline Digest some_digest(std::uint8_t number) {
  Digest digest;
  digest.bytes.fill(static_cast<std::byte>(number));
  return digest;
}

class Desk {
 public:
  static constexpr std::uint64_t bytes_per_rank = 100;

  explicit Desk(Settings settings = usual()) : coordinator(std::move(settings)) {}

  static Settings usual() {
    Settings settings;
    settings.root = "/root-of-test";
    settings.host = "head";
    settings.deadline = seconds(2);
    settings.grace = seconds(3);
    settings.nonce = Nonce{77};
    return settings;
  }

  // ---- the world that answers
  Nonce run{11};
  Epoch epoch{3};
  Epoch highest{3};
  Catalog catalog;
  std::map<CheckpointId, Decision> registers;  // what publish_once has made
  std::vector<CheckpointId> removed;
  std::vector<std::string> folders;
  std::function<bool(const Effect&)> hold;             // effects to keep unanswered, in `held`
  std::function<bool(const Effect&)> fail;             // effects whose answer is an error
  std::function<bool(const Effect&)> fail_afterwards;  // they happen, but the answer is an error
  std::vector<Effect> held;
  std::vector<EncodedPlan> plans;  // by body digest's first byte; made on demand
  int planned = 0;
  TimePoint now{seconds(1000)};
  std::optional<Exit> exited;
  bool serving = false;
  std::vector<std::string> lines;

  struct Sent {
    std::string peer;
    Envelope envelope;
    Message message;
  };
  std::vector<Sent> sent;
  std::vector<std::string> dropped;
  Coordinator coordinator;
  std::vector<Effect> todo;

  // Tells one event and everything that follows from it.
  void tell(const Event& event);
  void answer(const Effect& effect);  // of an effect that was held
  void pass(Duration duration);       // in steps of the pulse, firing the timer

  void serve();
  std::vector<Session> join(std::uint32_t ranks, const std::string& name = "", std::uint64_t incarnation_base = 100);
  void join_one(std::uint32_t rank, std::uint32_t ranks, const std::string& name = "",
                std::uint64_t incarnation_base = 100);
  Envelope envelope(std::uint32_t rank) const;
  void say(std::uint32_t rank, Message message, Attempt attempt = {});
  SaveCall save_call(std::uint64_t ordinal, std::uint64_t step) const;
  void call_save(std::uint64_t ordinal, std::uint64_t step);  // all ranks, bodies given when asked for
  void give_bodies(std::uint32_t rank);
  Receipt receipt(std::uint32_t rank, std::uint64_t ordinal) const;
  void send_receipt(std::uint32_t rank, std::uint64_t ordinal);
  void receipts(std::uint64_t ordinal);
  void save(std::uint64_t ordinal, std::uint64_t step);  // a whole one
  LoadCall load_call(std::uint64_t ordinal, Selector selector) const;

  // Messages of one kind that were sent since the last look; looking forgets them.
  template <typename Kind>
  std::vector<Sent> take() {
    std::vector<Sent> found;
    std::erase_if(sent, [&](const Sent& one) {
      if (!std::holds_alternative<Kind>(one.message)) return false;
      found.push_back(one);
      return true;
    });
    return found;
  }
  template <typename Kind>
  Kind only() {
    auto found = take<Kind>();
    REQUIRE(!found.empty());
    for (const auto& one : found) CHECK(std::get<Kind>(one.message) == std::get<Kind>(found.front().message));
    return std::get<Kind>(found.front().message);
  }

  std::uint32_t world = 0;
  std::uint64_t incarnations = 100;
  std::map<std::uint64_t, CheckpointId> ids;  // by ordinal, from the slices
  bool logged(const std::string& part) const;

 private:
  void run_effects();
  void perform(const Effect& effect, bool failing);
  EncodedPlan plan() const;
};

}  // namespace vckpt::coordinator
