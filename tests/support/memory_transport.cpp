#include "tests/support/memory_transport.h"

#include <utility>

namespace vckpt {
namespace {

constexpr std::size_t pieces_on_the_way_max = 4;  // per pair
constexpr std::size_t early_frames_max = 1 << 16;

}  // namespace

std::string MemoryNetwork::join(MemoryTransport& transport) {
  const std::string address = "memory:" + std::to_string(++last_end_);
  ends_[address] = &transport;
  return address;
}

void MemoryNetwork::leave(const std::string& address) {
  ends_.erase(address);
  for (const auto& [other, transport] : ends_) {
    Frame farewell;
    farewell.source = address;
    farewell.target = other;
    farewell.farewell = true;
    carry(std::move(farewell));
  }
}

void MemoryNetwork::carry(Frame frame) {
  auto& last_arrival = last_arrivals_[{frame.source, frame.target}];
  const auto delay_range = static_cast<std::uint64_t>(options_.delay_max.count()) + 1;
  last_arrival = std::max(last_arrival, clock_.now() + Duration(static_cast<std::int64_t>(random_() % delay_range)));
  clock_.call_at(last_arrival, [this, carried = std::make_shared<Frame>(std::move(frame))] { arrive(carried); });
}

void MemoryNetwork::arrive(std::shared_ptr<Frame> frame) {
  if (stalled_.contains(frame->source) || stalled_.contains(frame->target)) {
    held_.push_back(std::move(frame));
    return;
  }
  if (const auto target = ends_.find(frame->target); target != ends_.end()) {
    const bool damaged = frame->said.kind == FrameKind::data && damaged_.erase(frame->target) > 0;
    moved_bytes_ += frame->payload.size();
    target->second->hear(frame, damaged);
  }
  if (const auto source = ends_.find(frame->source); source != ends_.end() && frame->said.kind == FrameKind::data) {
    source->second->carried(frame->target);
  }
}

void MemoryNetwork::stall(const std::string& address) { stalled_.insert(address); }

void MemoryNetwork::resume(const std::string& address) {
  stalled_.erase(address);
  for (auto& frame : std::exchange(held_, {})) {
    clock_.call_at(clock_.now(), [this, held = std::move(frame)] { arrive(held); });
  }
}

MemoryTransport::MemoryTransport(MemoryNetwork& network, Clock& clock)
    : network_(network), clock_(clock), address_(network.join(*this)) {}

MemoryTransport::~MemoryTransport() {
  *alive_ = false;
  network_.leave(address_);
  clock_.cancel(turn_timer_);
  clock_.cancel(expiry_timer_);
}

void MemoryTransport::begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) {
  exchange_.begin(self, peers, generation);
  peers_.clear();
  lost_.clear();
  on_the_way_.clear();
  to_wake_.clear();
  for (const Peer& peer : peers) peers_[peer.transport_address] = peer.rank;
  for (const auto& frame : std::exchange(early_, {})) hear(frame, false);
}

void MemoryTransport::post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
                           Completion done) {
  for (const Send& send : sends) to_wake_.insert(send.peer);
  for (const Receive& receive : receives) to_wake_.insert(receive.peer);
  exchange_.post(round, std::move(sends), std::move(receives), deadline, std::move(done), clock_.now());
  schedule_turn();
}

void MemoryTransport::cancel(Completion done) {
  exchange_.cancel();
  for (auto& finished : exchange_.take_finished()) {
    callbacks_.push_back([finished = std::move(finished)] { finished.done(finished.result); });
  }
  callbacks_.push_back([done = std::move(done)] { done({}); });
  schedule_turn();
}

void MemoryTransport::hear(const std::shared_ptr<Frame>& frame, bool damaged) {
  if (frame->farewell) return lose(frame->source);
  if (!exchange_.running() || frame->generation != exchange_.generation()) {
    // Only what asks, and only before its exchange: data comes when it was asked for, so this end has moved on.
    if (frame->said.kind == FrameKind::ready && early_.size() < early_frames_max) early_.push_back(frame);
    return;
  }
  const Peer* const peer = exchange_.find(frame->from);
  if (peer == nullptr || peer->incarnation != frame->from_incarnation) return;
  const OutgoingFrame& said = frame->said;
  switch (said.kind) {
    case FrameKind::ready: check(exchange_.on_ready(frame->from, said.round, said.length_bytes, clock_.now())); break;
    case FrameKind::ack: check(exchange_.on_ack(frame->from, said.round, clock_.now())); break;
    case FrameKind::data: hear_data(*frame, damaged); break;
  }
  to_wake_.insert(frame->from);
  schedule_turn();
}

void MemoryTransport::hear_data(const Frame& frame, bool damaged) {
  const OutgoingFrame& said = frame.said;
  if (!exchange_.active()) return;
  if (damaged) return check(exchange_.broken(frame.from, said.round, "bytes arrived with a wrong checksum"));
  const auto expected = exchange_.on_data(frame.from, said.round, said.offset_bytes, said.length_bytes, clock_.now());
  check(expected);
  if (!expected || frame.payload.empty()) return;
  const GuardedMemory::Access access(network_.options_.guard);
  exchange_.on_bytes(frame.from, said.round, frame.payload, clock_.now());
}

void MemoryTransport::lose(const std::string& address) {
  lost_.insert(address);
  const auto peer = peers_.find(address);
  if (peer == peers_.end() || !exchange_.active() || !exchange_.needs(peer->second)) return;
  check(exchange_.lost(peer->second, "it is gone"));
}

void MemoryTransport::carried(const std::string& target) {
  auto& on_the_way = on_the_way_[target];
  if (on_the_way > 0) --on_the_way;
  if (const auto peer = peers_.find(target); peer != peers_.end()) {
    to_wake_.insert(peer->second);
    schedule_turn();
  }
}

void MemoryTransport::speak_to(Rank peer) {
  if (!exchange_.active() || !exchange_.needs(peer)) return;
  const Peer& self = exchange_.self();
  const std::string address = exchange_.find(peer)->transport_address;
  if (lost_.contains(address) || !network_.reaches(address)) return check(exchange_.lost(peer, "it is gone"));
  auto& on_the_way = on_the_way_[address];
  while (on_the_way < pieces_on_the_way_max) {
    const auto said = exchange_.next(peer);
    if (!said) return;
    Frame frame{address_, address, self.rank, self.incarnation, exchange_.generation(), *said, {}, false};
    {
      const GuardedMemory::Access access(network_.options_.guard);
      frame.payload.assign(said->payload.begin(), said->payload.end());
    }
    frame.said.payload = {};
    if (said->kind == FrameKind::data) ++on_the_way;
    network_.carry(std::move(frame));
    exchange_.sent(peer, *said, clock_.now());
  }
}

void MemoryTransport::check(const Result<void>& result) {
  if (result) return;
  exchange_.fail(result.error());
  schedule_turn();
}

void MemoryTransport::schedule_turn() {
  if (std::exchange(turn_scheduled_, true)) return;
  turn_timer_ = clock_.call_at(clock_.now(), [this] { turn(); });
}

void MemoryTransport::turn() {
  turn_scheduled_ = false;
  for (const Rank peer : std::exchange(to_wake_, {})) speak_to(peer);
  for (auto& finished : exchange_.take_finished()) {
    callbacks_.push_back([finished = std::move(finished)] { finished.done(finished.result); });
  }
  arm_expiry();
  const auto alive = alive_;
  for (const auto& callback : std::exchange(callbacks_, {})) {
    callback();
    if (!*alive) return;
  }
}

void MemoryTransport::arm_expiry() {
  const auto next = exchange_.next_expiry();
  if (expiry_timer_ != 0 && next && expiry_ <= *next) return;
  clock_.cancel(std::exchange(expiry_timer_, 0));
  if (!next) return;
  expiry_ = *next;
  expiry_timer_ = clock_.call_at(expiry_, [this] {
    expiry_timer_ = 0;
    if (auto expired = exchange_.expired(clock_.now())) check(*expired);
    arm_expiry();
  });
}

}  // namespace vckpt
