#include "runtime/exchange.h"

#include <algorithm>
#include <utility>

namespace vckpt {
namespace {

constexpr std::size_t named_peers_max = 4;  // in one message

std::string of(std::uint64_t part_bytes, std::uint64_t whole_bytes) {
  return std::to_string(part_bytes) + " of " + std::to_string(whole_bytes) + " bytes";
}

}  // namespace

void Exchange::begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) {
  VCKPT_ASSERT(rounds_.empty());
  self_ = self;
  generation_ = generation;
  running_ = true;
  last_posted_.reset();
  failure_.reset();
  sessions_.clear();
  for (const Peer& peer : peers) sessions_[peer.rank].peer = peer;
  VCKPT_ASSERT(sessions_.contains(self));
}

const Peer* Exchange::find(Rank peer) const {
  const auto session = sessions_.find(peer);
  return session == sessions_.end() ? nullptr : &session->second.peer;
}

std::optional<Error> Exchange::refusal(Round round, const std::vector<Send>& sends,
                                       const std::vector<Receive>& receives) const {
  const std::string what = "round " + std::to_string(round.value);
  if (failure_) return *failure_;
  if (!running_) return internal(what + " was posted outside of an exchange");
  if (last_posted_ && round <= *last_posted_) {
    return internal(what + " was posted after round " + std::to_string(last_posted_->value));
  }
  std::set<Rank> targets;
  for (const Send& send : sends) {
    const bool fine = send.peer != self_ && sessions_.contains(send.peer) && targets.insert(send.peer).second;
    if (!fine) return internal(what + " has no such target, or twice: rank " + std::to_string(send.peer.value));
  }
  std::set<Rank> sources;
  for (const Receive& receive : receives) {
    const bool fine = receive.peer != self_ && sessions_.contains(receive.peer) && sources.insert(receive.peer).second;
    if (!fine) return internal(what + " has no such source, or twice: rank " + std::to_string(receive.peer.value));
    if (packed_bytes(receive.scatter) != receive.length_bytes) {
      return internal(what + " scatters another number of bytes than it receives");
    }
  }
  return std::nullopt;
}

void Exchange::post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
                    Transport::Completion done, TimePoint now) {
  if (auto refused = refusal(round, sends, receives)) {
    finished_.push_back({std::move(done), *std::move(refused)});
    return;
  }
  last_posted_ = round;
  if (sends.empty() && receives.empty()) {
    finished_.push_back({std::move(done), {}});
    return;
  }
  Posted& posted = rounds_[round];
  posted.deadline = deadline;
  posted.moved = now;
  posted.done = std::move(done);
  posted.open_count = sends.size() + receives.size();
  for (Receive& receive : receives) {
    sessions_.at(receive.peer).control.push_back({FrameKind::ready, round, 0, receive.length_bytes, {}});
    Inbound& inbound = posted.receives[receive.peer];
    inbound.length_bytes = receive.length_bytes;
    inbound.scatter = std::move(receive.scatter);
  }
  for (const Send& send : sends) {
    Outbound& outbound = posted.sends[send.peer];
    for (const auto part : send.source) {
      if (!part.empty()) outbound.left.push_back(part);
      outbound.length_bytes += part.size();
    }
  }
  for (const Send& send : sends) {
    PeerSession& session = sessions_.at(send.peer);
    const auto early = session.early.find(round);
    if (early == session.early.end()) continue;
    const auto taken = take_ready(send.peer, round, posted.sends.at(send.peer), early->second);
    session.early.erase(early);
    if (!taken) return fail(taken.error());
  }
}

Result<void> Exchange::take_ready(Rank peer, Round round, Outbound& send, std::uint64_t length_bytes) {
  if (length_bytes != send.length_bytes) {
    return broken(peer, round,
                  "it expects " + std::to_string(length_bytes) + " bytes where " + std::to_string(send.length_bytes) +
                      " are sent");
  }
  send.ready = true;
  sessions_.at(peer).sendable.insert(round);
  return {};
}

Result<void> Exchange::on_ready(Rank peer, Round round, std::uint64_t length_bytes, TimePoint now) {
  if (!active()) return {};
  PeerSession& session = sessions_.at(peer);
  if (session.last_ready && round <= *session.last_ready) return broken(peer, round, "it was ready for a later one");
  session.last_ready = round;
  const auto posted = rounds_.find(round);
  if (posted == rounds_.end()) {
    if (last_posted_ && round <= *last_posted_) return broken(peer, round, "it waits for what nobody sends");
    if (session.early.size() >= rounds_ahead_max) return broken(peer, round, "it is ready for too many rounds");
    session.early.emplace(round, length_bytes);
    return {};
  }
  const auto send = posted->second.sends.find(peer);
  if (send == posted->second.sends.end()) return broken(peer, round, "it waits for what nobody sends");
  posted->second.moved = now;
  return take_ready(peer, round, send->second, length_bytes);
}

Result<void> Exchange::on_ack(Rank peer, Round round, TimePoint now) {
  if (!active()) return {};
  const auto posted = rounds_.find(round);
  if (posted == rounds_.end()) return broken(peer, round, "it acknowledged what it was not sent");
  const auto send = posted->second.sends.find(peer);
  if (send == posted->second.sends.end() || !send->second.handed_all || send->second.acknowledged) {
    return broken(peer, round, "it acknowledged what it was not sent");
  }
  send->second.acknowledged = true;
  posted->second.moved = now;
  close_one(posted);
  return {};
}

Result<void> Exchange::on_data(Rank peer, Round round, std::uint64_t offset_bytes, std::uint64_t length_bytes,
                               TimePoint now) {
  if (!active()) return {};
  const auto posted = rounds_.find(round);
  if (posted == rounds_.end()) return broken(peer, round, "it sent what nobody waits for");
  const auto receive = posted->second.receives.find(peer);
  if (receive == posted->second.receives.end()) return broken(peer, round, "it sent what nobody waits for");
  Inbound& inbound = receive->second;
  const bool empty_ok = inbound.length_bytes == 0;
  if (inbound.arrived_bytes != inbound.expected_bytes || offset_bytes != inbound.expected_bytes || inbound.complete ||
      length_bytes > inbound.length_bytes - inbound.expected_bytes || (length_bytes == 0 && !empty_ok)) {
    return broken(peer, round, "it sent bytes out of place");
  }
  inbound.expected_bytes += length_bytes;
  posted->second.moved = now;
  if (empty_ok) receive_arrived(peer, round);
  return {};
}

void Exchange::on_bytes(Rank peer, Round round, std::span<const std::byte> bytes, TimePoint now) {
  const auto posted = rounds_.find(round);
  if (posted == rounds_.end()) return;  // failed meanwhile
  Inbound& inbound = posted->second.receives.at(peer);
  VCKPT_ASSERT(bytes.size() <= inbound.expected_bytes - inbound.arrived_bytes);
  scatter_range(bytes, inbound.arrived_bytes, inbound.scatter);
  inbound.arrived_bytes += bytes.size();
  posted->second.moved = now;
  if (inbound.arrived_bytes == inbound.length_bytes) receive_arrived(peer, round);
}

void Exchange::receive_arrived(Rank peer, Round round) {
  rounds_.at(round).receives.at(peer).complete = true;
  sessions_.at(peer).control.push_back({FrameKind::ack, round, 0, 0, {}});
}

std::optional<OutgoingFrame> Exchange::next(Rank peer) {
  PeerSession& session = sessions_.at(peer);
  if (!session.control.empty()) {
    const OutgoingFrame frame = session.control.front();
    session.control.pop_front();
    return frame;
  }
  if (session.sendable.empty()) return std::nullopt;
  const Round round = *session.sendable.begin();
  Outbound& send = rounds_.at(round).sends.at(peer);
  OutgoingFrame frame{FrameKind::data, round, send.handed_bytes, 0, {}};
  if (!send.left.empty()) {
    auto& part = send.left.front();
    frame.payload = part.first(std::min<std::uint64_t>(part.size(), frame_payload_bytes_max));
    frame.length_bytes = frame.payload.size();
    part = part.subspan(frame.payload.size());
    if (part.empty()) send.left.pop_front();
  }
  send.handed_bytes += frame.length_bytes;
  if (send.left.empty()) session.sendable.erase(session.sendable.begin());
  return frame;
}

void Exchange::moved(const OutgoingFrame& frame, TimePoint now) {
  if (const auto posted = rounds_.find(frame.round); posted != rounds_.end()) posted->second.moved = now;
}

void Exchange::sent(Rank peer, const OutgoingFrame& frame, TimePoint now) {
  const auto posted = rounds_.find(frame.round);
  if (posted == rounds_.end()) return;
  posted->second.moved = now;
  if (frame.kind == FrameKind::ack) {
    posted->second.receives.at(peer).acknowledged = true;
    return close_one(posted);
  }
  if (frame.kind != FrameKind::data) return;
  Outbound& send = posted->second.sends.at(peer);
  send.handed_all = frame.offset_bytes + frame.length_bytes == send.length_bytes;
}

void Exchange::close_one(std::map<Round, Posted>::iterator posted) {
  if (--posted->second.open_count > 0) return;
  finished_.push_back({std::move(posted->second.done), {}});
  rounds_.erase(posted);
}

std::string Exchange::name(Rank peer) const {
  return "rank " + std::to_string(peer.value) + " on host " + sessions_.at(peer).peer.host;
}

std::optional<Round> Exchange::lowest_open_round(Rank peer) const {
  for (const auto& [round, posted] : rounds_) {
    const auto send = posted.sends.find(peer);
    if (send != posted.sends.end() && !send->second.acknowledged) return round;
    const auto receive = posted.receives.find(peer);
    if (receive != posted.receives.end() && !receive->second.acknowledged) return round;
  }
  return std::nullopt;
}

Error Exchange::lost(Rank peer, const std::string& why) const {
  const auto round = lowest_open_round(peer);
  return unavailable(name(peer) + ": " + (round ? "round " + std::to_string(round->value) + ": " : "") + why);
}

Error Exchange::broken(Rank peer, Round round, const std::string& why) const {
  return corrupt(name(peer) + ": round " + std::to_string(round.value) + ": " + why);
}

void Exchange::fail(Error error) {
  if (failure_ || !running_) return;
  failure_ = std::move(error);
  for (auto& [round, posted] : rounds_) finished_.push_back({std::move(posted.done), *failure_});
  rounds_.clear();
  for (auto& [rank, session] : sessions_) {
    session.control.clear();
    session.sendable.clear();
    session.early.clear();
  }
}

std::string Exchange::waiting_for(const Posted& posted) const {
  std::string text;
  std::size_t count = 0;
  const auto add = [&](Rank peer, const std::string& what) {
    if (++count <= named_peers_max) text += (count > 1 ? ", " : "") + name(peer) + " (" + what + ")";
  };
  for (const auto& [peer, receive] : posted.receives) {
    if (!receive.complete) add(peer, "has sent " + of(receive.arrived_bytes, receive.length_bytes));
  }
  for (const auto& [peer, send] : posted.sends) {
    if (send.acknowledged) continue;
    add(peer, send.ready ? "was given " + of(send.handed_bytes, send.length_bytes) + ", no acknowledgement"
                         : "is not ready to receive");
  }
  if (count > named_peers_max) text += " and " + std::to_string(count - named_peers_max) + " more";
  return text;
}

std::optional<Error> Exchange::expired(TimePoint now) const {
  TimePoint moved{};
  for (const auto& [round, posted] : rounds_) {
    moved = std::max(moved, posted.moved);
    if (now < moved + posted.deadline) continue;
    const auto deadline_ms = std::chrono::duration_cast<std::chrono::milliseconds>(posted.deadline).count();
    return unavailable("round " + std::to_string(round.value) + ": nothing has moved for " +
                       std::to_string(deadline_ms) + " ms; waiting for " + waiting_for(posted));
  }
  return std::nullopt;
}

std::optional<TimePoint> Exchange::next_expiry() const {
  std::optional<TimePoint> first;
  TimePoint moved{};
  for (const auto& [round, posted] : rounds_) {
    moved = std::max(moved, posted.moved);
    first = std::min(first.value_or(moved + posted.deadline), moved + posted.deadline);
  }
  return first;
}

void Exchange::cancel() {
  fail(aborted("the exchange was cancelled"));
  running_ = false;
  failure_.reset();
}

std::vector<Exchange::Finished> Exchange::take_finished() { return std::exchange(finished_, {}); }

}  // namespace vckpt
