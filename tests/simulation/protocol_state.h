// One state of the protocol model: bytes only, so that millions of them are kept and compared.
#pragma once

#include <array>
#include <cstdint>

namespace vckpt::model {

constexpr std::size_t coordinators_max = 4;
constexpr std::size_t workers_max = 2;
constexpr std::size_t attempts_max = 4;
constexpr std::uint8_t none = 0xFF;  // instead of the number of an attempt

enum class Phase : std::uint8_t {
  off,
  claimed,     // has an epoch, must list
  idle,        // has listed; first decides what it found
  starting,    // found its epoch the highest, is about to create an attempt
  gathering,   // waits for the receipts of `attempt`
  deciding,    // is about to publish `verdict`
  linked,      // its decision is visible
  durable,     // its COMMIT is durable; is its epoch still the highest?
  confirmed,   // tells workers
  retiring,    // its retirement of `attempt` is visible
  retired,     // and durable
  collecting,  // found no pin on `attempt`, is about to delete its data
  dead,
};

enum class Record : std::uint8_t { absent, abort, commit };
enum class Seen : std::uint8_t { absent, visible, durable };
enum class Data : std::uint8_t { absent, whole, cut_short };
enum class Reading : std::uint8_t { nothing, chosen, pinned, confirmed };

struct AttemptState {
  std::uint8_t epoch = 0;  // 0: not made
  std::uint8_t number = 0;
  std::uint8_t session = 0;
  std::uint8_t step = 0;
  std::uint8_t parent = none;
  std::array<Data, workers_max> data{};
  Record record = Record::absent;
  Seen seen = Seen::absent;  // of the record
  Seen retirement = Seen::absent;
  bool gone = false;     // its data was deleted
  bool trusted = false;  // history: somebody was told that it is durable, or loaded it
  bool settled = false;  // history: a decision was durable
  auto operator<=>(const AttemptState&) const = default;
};

struct CoordinatorState {
  Phase phase = Phase::off;
  std::uint8_t attempt = none;
  Record verdict = Record::absent;
  std::uint8_t found = 0;     // undecided attempts, one bit each
  std::uint8_t receipts = 0;  // of `attempt`, one bit for each worker
  auto operator<=>(const CoordinatorState&) const = default;
};

struct WorkerState {
  bool lives = true;
  std::uint8_t epoch = 0;       // of the coordinator that it has joined
  std::uint8_t attempt = none;  // whose receipt it holds
  Data receipt = Data::absent;  // as it lies on storage, which only the sizes in the receipt tell
  auto operator<=>(const WorkerState&) const = default;
};

struct State {
  std::array<AttemptState, attempts_max> attempts{};  // in the order in which they were made
  std::array<CoordinatorState, coordinators_max> coordinators{};
  std::array<WorkerState, workers_max> workers{};
  std::uint8_t session = 1;
  bool loaded = true;        // this session knows its line
  std::uint8_t line = none;  // what it has loaded or committed last
  std::uint8_t head = none;  // history: the last that any session heard of as committed, or loaded as the newest
  Reading reading = Reading::nothing;
  std::uint8_t read = none;
  std::uint8_t power_cuts = 0;
  std::uint8_t short_writes = 0;
  bool decided_twice = false;  // history: a decision took the place of another
  bool missed_newest = false;  // history: what was taken for newest is not where training went
  bool loaded_undecided = false;
  auto operator<=>(const State&) const = default;
};

}  // namespace vckpt::model
