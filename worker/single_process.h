// A job of one process: its coordinator lives in the worker, on the same actor, and claims an epoch like any other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/actor.h"
#include "runtime/channel.h"
#include "runtime/compute.h"
#include "runtime/storage.h"
#include "schema/ids.h"
#include "schema/result.h"

namespace vckpt {

// Threading: made, used and destroyed on the actor; the seams outlive it.
class SingleProcess {
 public:
  struct Options {
    std::string run;  // empty: whatever RUN says
    std::string host;
    Duration deadline{};
    Nonce run_nonce;
    Nonce nonce;
  };

  // `serving` runs once the worker may join. `exited` runs once, when the coordinator has ended, with an error unless
  // it was stopped; not from inside of start or stop.
  SingleProcess(Actor& actor, Channel& channel, Storage& storage, Compute& compute, Options options,
                std::function<void()> serving, std::function<void(std::optional<Error>)> exited);
  ~SingleProcess();
  SingleProcess(const SingleProcess&) = delete;
  SingleProcess& operator=(const SingleProcess&) = delete;

  void start();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vckpt
