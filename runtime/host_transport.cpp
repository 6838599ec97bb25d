#include "runtime/host_transport.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "runtime/exchange.h"
#include "runtime/host_address.h"
#include "runtime/inbound_stream.h"
#include "runtime/outbound_stream.h"
#include "runtime/stream_listener.h"

namespace vckpt {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t scratch_bytes = 256 << 10;  // what was read and is not yet scattered, of all connections
constexpr std::size_t strangers_max = 1024;       // connections that are not part of the exchange, or not yet
constexpr auto hello_deadline = 10s;
constexpr auto last_words_interval = 1s;  // from a peer that hears no more: its own words may still be on their way

std::string random_name() {
  std::random_device device;
  std::uniform_int_distribution<std::uint64_t> number;
  char text[48];
  std::snprintf(text, sizeof text, "vckpt-%016llx%016llx", static_cast<unsigned long long>(number(device)),
                static_cast<unsigned long long>(number(device)));
  return text;
}

}  // namespace

// Sockets and timers around an Exchange.
class HostTransport::Loop : public std::enable_shared_from_this<HostTransport::Loop> {
 public:
  explicit Loop(Actor& actor) : actor_(actor), scratch_(scratch_bytes) {}

  Result<void> listen(const HostTransportOptions& options);
  std::string address() const { return address_.text(); }
  void begin(Rank self, std::span<const Peer> peers, std::uint32_t generation);
  void post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline, Completion done);
  void cancel(Completion done);
  void close();

 private:
  TimePoint now() const { return actor_.clock().now(); }

  // Connections
  void accept(StreamKind kind, Descriptor socket);
  void refuse(const InboundStream& stranger);
  void greet(const std::shared_ptr<InboundStream>& stranger);
  void hear(Rank peer, const FrameHeader& header);
  void hear_bytes(Rank peer, const FrameHeader& header, std::span<const std::byte> bytes);
  void inbound_ended(Rank peer, const Error& error, const std::optional<FrameHeader>& frame);
  void speak_to(Rank peer);
  void outbound_ended(Rank peer, const std::string& why);
  void judge(Rank peer);
  void close_connections();

  // Rounds
  void check(const Result<void>& result);
  void schedule_turn();
  void turn();
  void arm_expiry();

  Actor& actor_;
  std::vector<std::byte> scratch_;
  StreamAddress address_;
  std::vector<std::unique_ptr<StreamListener>> listeners_;
  Exchange exchange_;
  std::uint64_t era_ = 0;  // raised when all connections are closed: what was set going before is void

  std::vector<std::shared_ptr<InboundStream>> strangers_;
  std::map<Rank, std::shared_ptr<InboundStream>> inbound_;
  std::map<Rank, std::shared_ptr<OutboundStream>> outbound_;
  std::map<Rank, std::string> lost_;  // why

  std::set<Rank> to_wake_;
  std::vector<std::function<void()>> callbacks_;
  bool turn_scheduled_ = false;
  bool closed_ = false;
  TimerId expiry_timer_ = 0;
  TimePoint expiry_{};
};

Result<void> HostTransport::Loop::listen(const HostTransportOptions& options) {
  const auto accepted = [this](StreamKind kind, Descriptor socket) { accept(kind, std::move(socket)); };
  if (options.local == LocalSockets::on) {
    address_.unix_name = random_name();
    VCKPT_TRY(auto socket, listen_unix(address_.unix_name));
    listeners_.push_back(std::make_unique<StreamListener>(actor_, StreamKind::local, std::move(socket), accepted));
  }
  if (!options.tcp_host.empty()) {
    VCKPT_TRY(const auto host, resolve_host(options.tcp_host));
    if (host.any) return invalid("transport host " + options.tcp_host + ": name one address that peers can reach");
    VCKPT_TRY(auto listener, listen_tcp(host.number));
    address_.tcp_host = host.number;
    address_.tcp_port = listener.port;
    listeners_.push_back(
        std::make_unique<StreamListener>(actor_, StreamKind::network, std::move(listener.socket), accepted));
  }
  return {};
}

void HostTransport::Loop::begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) {
  close_connections();
  exchange_.begin(self, peers, generation);
  const auto parked = strangers_;
  for (const auto& stranger : parked) {
    if (stranger->hello()) greet(stranger);
  }
}

void HostTransport::Loop::post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
                               Completion done) {
  std::set<Rank> peers;
  for (const Send& send : sends) peers.insert(send.peer);
  for (const Receive& receive : receives) peers.insert(receive.peer);
  exchange_.post(round, std::move(sends), std::move(receives), deadline, std::move(done), now());
  for (const Rank peer : peers) {
    if (lost_.contains(peer)) judge(peer);
    to_wake_.insert(peer);
  }
  schedule_turn();
}

void HostTransport::Loop::cancel(Completion done) {
  exchange_.cancel();
  close_connections();
  for (auto& finished : exchange_.take_finished()) {
    callbacks_.push_back([finished = std::move(finished)] { finished.done(finished.result); });
  }
  callbacks_.push_back([done = std::move(done)] { done({}); });
  schedule_turn();
}

void HostTransport::Loop::close() {
  closed_ = true;
  exchange_.cancel();
  close_connections();
  for (const auto& stranger : strangers_) stranger->pause();
  strangers_.clear();
  listeners_.clear();
  actor_.clock().cancel(expiry_timer_);
}

void HostTransport::Loop::close_connections() {
  ++era_;
  for (auto& [peer, stream] : inbound_) stream->pause();
  for (auto& [peer, stream] : outbound_) stream->pause();
  inbound_.clear();
  outbound_.clear();
  lost_.clear();
  to_wake_.clear();
}

void HostTransport::Loop::accept(StreamKind kind, Descriptor socket) {
  if (strangers_.size() >= strangers_max) return;
  const auto stranger = std::make_shared<InboundStream>(actor_, kind, std::move(socket), scratch_);
  strangers_.push_back(stranger);
  const std::weak_ptr<InboundStream> weak = stranger;
  InboundStream::Events events;
  events.hello = [this, weak](const Greeting&) { greet(weak.lock()); };
  events.frame = [this, weak](const FrameHeader& header) { hear(weak.lock()->hello()->from, header); };
  events.bytes = [this, weak](const FrameHeader& header, std::span<const std::byte> bytes) {
    hear_bytes(weak.lock()->hello()->from, header, bytes);
  };
  events.ended = [this, weak](const Error& error, const std::optional<FrameHeader>& frame) {
    const auto stream = weak.lock();
    const auto member = stream->hello() ? inbound_.find(stream->hello()->from) : inbound_.end();
    if (member != inbound_.end() && member->second == stream) return inbound_ended(member->first, error, frame);
    refuse(*stream);
  };
  stranger->start(std::move(events));
  actor_.clock().call_at(now() + hello_deadline, [loop = weak_from_this(), weak] {
    const auto self = loop.lock();
    const auto late = weak.lock();
    if (self && late && !late->hello()) self->refuse(*late);
  });
}

void HostTransport::Loop::refuse(const InboundStream& stranger) {
  std::erase_if(strangers_, [&](const auto& entry) { return entry.get() == &stranger; });
}

// A hello for an exchange that we do not run, or not yet, waits: its rank may have heard of it earlier than we.
void HostTransport::Loop::greet(const std::shared_ptr<InboundStream>& stranger) {
  const Greeting hello = *stranger->hello();
  if (!exchange_.active() || hello.generation != exchange_.generation()) return;
  const Peer& self = exchange_.self();
  const Peer* peer = exchange_.find(hello.from);
  const bool expected = peer != nullptr && hello.from != self.rank && hello.to == self.rank &&
                        hello.from_incarnation == peer->incarnation && hello.to_incarnation == self.incarnation &&
                        !inbound_.contains(hello.from) && !lost_.contains(hello.from);
  if (!expected || !stranger->welcome(self.rank, self.incarnation)) return refuse(*stranger);
  inbound_.emplace(hello.from, stranger);
  refuse(*stranger);  // a stranger no longer
}

void HostTransport::Loop::hear(Rank peer, const FrameHeader& header) {
  if (header.generation != exchange_.generation()) return;  // its payload is passed over as well
  switch (header.kind) {
    case FrameKind::ready: check(exchange_.on_ready(peer, header.round, header.length_bytes, now())); break;
    case FrameKind::ack: check(exchange_.on_ack(peer, header.round, now())); break;
    case FrameKind::data:
      check(exchange_.on_data(peer, header.round, header.offset_bytes, header.length_bytes, now()));
      break;
  }
  to_wake_.insert(peer);
  schedule_turn();
}

void HostTransport::Loop::hear_bytes(Rank peer, const FrameHeader& header, std::span<const std::byte> bytes) {
  if (header.generation != exchange_.generation()) return;
  exchange_.on_bytes(peer, header.round, bytes, now());
  to_wake_.insert(peer);
  schedule_turn();
}

void HostTransport::Loop::inbound_ended(Rank peer, const Error& error, const std::optional<FrameHeader>& frame) {
  if (error.code == Code::corrupt) {
    return check(exchange_.broken(peer, frame ? frame->round : Round{}, error.message));
  }
  inbound_.erase(peer);
  lost_.try_emplace(peer, error.message);
  judge(peer);
}

void HostTransport::Loop::speak_to(Rank peer) {
  if (const auto known = outbound_.find(peer); known != outbound_.end()) return known->second->wake();
  if (!exchange_.needs(peer)) return;
  const Peer& self = exchange_.self();
  const Peer& target = *exchange_.find(peer);
  const auto address = parse_stream_address(target.transport_address);
  if (!address) return check(exchange_.lost(peer, address.error().message));
  const bool local = self.host == target.host && !address.value().unix_name.empty();
  if (!local && address.value().tcp_host.empty()) {
    return check(
        exchange_.lost(peer, "its address '" + target.transport_address + "' is not reachable from host " + self.host));
  }
  OutboundStream::Events events;
  events.next = [this, peer] { return exchange_.next(peer); };
  events.moved = [this](const OutgoingFrame& frame) { exchange_.moved(frame, now()); };
  events.sent = [this, peer](const OutgoingFrame& frame) {
    exchange_.sent(peer, frame, now());
    schedule_turn();
  };
  events.ended = [this, peer](const std::string& why) { outbound_ended(peer, why); };
  const Greeting hello{GreetingKind::hello, exchange_.generation(), self.rank, peer,
                       self.incarnation,    target.incarnation};
  const auto stream = std::make_shared<OutboundStream>(actor_, local ? StreamKind::local : StreamKind::network,
                                                       address.value(), hello, std::move(events));
  outbound_.emplace(peer, stream);
  stream->start();
}

// The peer hears no more. What it said before may still be unread, also when it did all its part and left: its own end
// tells, or the clock does.
void HostTransport::Loop::outbound_ended(Rank peer, const std::string& why) {
  lost_.try_emplace(peer, why);
  if (!inbound_.contains(peer)) return judge(peer);
  actor_.clock().call_at(now() + last_words_interval, [weak = weak_from_this(), peer, era = era_] {
    const auto self = weak.lock();
    if (self && !self->closed_ && self->era_ == era) self->judge(peer);
  });
}

void HostTransport::Loop::judge(Rank peer) {
  if (exchange_.needs(peer)) check(exchange_.lost(peer, lost_.at(peer)));
}

// After a failure the connections stay, silent: a peer that has nothing to do with it learns of it from the
// coordinator, with its true reason, and not from us.
void HostTransport::Loop::check(const Result<void>& result) {
  if (result) return;
  exchange_.fail(result.error());
  for (auto& [peer, stream] : inbound_) stream->pause();
  for (auto& [peer, stream] : outbound_) stream->pause();
  schedule_turn();
}

void HostTransport::Loop::schedule_turn() {
  if (std::exchange(turn_scheduled_, true)) return;
  actor_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->closed_) self->turn();
  });
}

void HostTransport::Loop::turn() {
  turn_scheduled_ = false;
  for (const Rank peer : std::exchange(to_wake_, {})) {
    if (exchange_.active()) speak_to(peer);
  }
  for (auto& finished : exchange_.take_finished()) {
    callbacks_.push_back([finished = std::move(finished)] { finished.done(finished.result); });
  }
  arm_expiry();
  for (const auto& callback : std::exchange(callbacks_, {})) {
    callback();
    if (closed_) return;
  }
}

void HostTransport::Loop::arm_expiry() {
  const auto next = exchange_.next_expiry();
  if (expiry_timer_ != 0 && next && expiry_ <= *next) return;  // it looks again when it runs
  actor_.clock().cancel(std::exchange(expiry_timer_, 0));
  if (!next) return;
  expiry_ = *next;
  expiry_timer_ = actor_.clock().call_at(expiry_, [this] {
    expiry_timer_ = 0;
    if (auto expired = exchange_.expired(now())) check(*expired);
    arm_expiry();
  });
}

HostTransport::HostTransport(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

HostTransport::~HostTransport() { loop_->close(); }

Result<std::unique_ptr<HostTransport>> HostTransport::listen(Actor& actor, const HostTransportOptions& options) {
  VCKPT_ASSERT(actor.on_this_thread());
  auto loop = std::make_shared<Loop>(actor);
  if (const auto listening = loop->listen(options); !listening) {
    loop->close();
    return listening.error();
  }
  return std::unique_ptr<HostTransport>(new HostTransport(std::move(loop)));
}

std::string HostTransport::address() const { return loop_->address(); }
void HostTransport::begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) {
  loop_->begin(self, peers, generation);
}
void HostTransport::post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
                         Completion done) {
  loop_->post(round, std::move(sends), std::move(receives), deadline, std::move(done));
}
void HostTransport::cancel(Completion done) { loop_->cancel(std::move(done)); }

}  // namespace vckpt
