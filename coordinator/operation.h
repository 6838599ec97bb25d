// One effect whose answer a call waits for. An answer that failed can be asked for again, the very same effect, at the
// next tick; so a lost answer of a publication is found out by publishing the same bytes.
#pragma once

#include <optional>
#include <utility>

#include "coordinator/call_context.h"

namespace vckpt::coordinator {

class Operation {
 public:
  // `make(ticket)` gives the effect. What was waited for before is forgotten: its answer will be ignored.
  template <typename Make>
  void begin(Outbox& out, TimePoint now, Make make) {
    ticket_ = out.ticket();
    effect_ = make(ticket_);
    since_ = now;
    failure_.reset();
    pending_ = true;
    out.push(*effect_);
  }

  // True once, for the answer that is waited for.
  bool answered(Ticket ticket) {
    if (!pending_ || failure_ || ticket != ticket_) return false;
    pending_ = false;
    return true;
  }

  // The answer, just taken, leaves the outcome open.
  void failed(Error error) {
    failure_ = std::move(error);
    pending_ = true;
  }

  const std::optional<Error>& failure() const { return failure_; }
  bool pending() const { return pending_; }
  TimePoint since() const { return since_; }

  void again(Outbox& out) {
    failure_.reset();
    out.push(*effect_);
  }
  void forget() {
    pending_ = false;
    failure_.reset();
  }

 private:
  Ticket ticket_;
  std::optional<Effect> effect_;
  TimePoint since_;
  std::optional<Error> failure_;
  bool pending_ = false;
};

}  // namespace vckpt::coordinator
