#include "runtime/zmq_channel.h"

#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>
#include <zmq.hpp>

#include "runtime/frame_queue.h"
#include "runtime/host_address.h"
#include "runtime/open_files.h"

namespace vckpt {
namespace {

using namespace std::chrono_literals;

constexpr int hwm_frames = 64;             // inside ZeroMQ, per peer and direction; beyond it our own queue counts
constexpr int backlog_connections = 4096;  // the default of 100 makes a start of thousands stutter
constexpr int reconnect_ms = 100;          // doubling
constexpr int reconnect_ms_max = 2000;
constexpr int heartbeat_ms = 15'000;  // answered by ZeroMQ's own thread: finds dead hosts, not stuck trainers
constexpr int heartbeat_timeout_ms = 60'000;
constexpr int turn_frames_max = 256;  // received per turn, so that the actor's other work is not starved
constexpr auto retry_interval = 50ms;
constexpr std::uint64_t open_files_reserve = 256;  // of the process, for all that is not a connection
constexpr auto idle_peer_after = 60s;
constexpr std::size_t routing_id_bytes_max = 255;

// Who spoke lately. ROUTER tells nobody when a peer leaves, so the silent ones are forgotten when room is needed.
class PeerTable {
 public:
  explicit PeerTable(std::size_t peers_max) : peers_max_(peers_max) {}

  bool admit(const PeerId& peer, TimePoint now) {
    if (const auto known = heard_.find(peer); known != heard_.end()) {
      known->second = now;
      return true;
    }
    if (heard_.size() >= peers_max_) forget_idle(now);
    if (heard_.size() >= peers_max_) return false;
    heard_.emplace(peer, now);
    return true;
  }
  void forget(const PeerId& peer) { heard_.erase(peer); }

 private:
  void forget_idle(TimePoint now) {
    if (now < next_sweep_) return;  // a sweep costs all peers: at most one a second
    next_sweep_ = now + 1s;
    std::erase_if(heard_, [now](const auto& entry) { return now - entry.second > idle_peer_after; });
  }

  std::size_t peers_max_;
  std::unordered_map<PeerId, TimePoint> heard_;
  TimePoint next_sweep_{};
};

Error translate(const std::string& what, const zmq::error_t& error) {
  const std::string message = what + ": " + error.what();
  switch (error.num()) {
    case EADDRINUSE: return unavailable(what + ": the port is in use");
    case EADDRNOTAVAIL:
    case ENODEV: return invalid(what + ": not an address of this machine");
    case EACCES: return invalid(what + ": the port needs privileges");
    case EMFILE:
    case ENFILE: return exhausted(message);
    case EINVAL:
    case EPROTONOSUPPORT: return invalid(what + ": not an endpoint of the form tcp://host:port");
    default: return unavailable(message);
  }
}

void set_common(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, hwm_frames);
  socket.set(zmq::sockopt::rcvhwm, hwm_frames);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(channel_frame_bytes_max));
  socket.set(zmq::sockopt::heartbeat_ivl, heartbeat_ms);
  socket.set(zmq::sockopt::heartbeat_timeout, heartbeat_timeout_ms);
  socket.set(zmq::sockopt::heartbeat_ttl, heartbeat_timeout_ms);
}

Bytes to_bytes(const zmq::message_t& part) {
  const auto* data = part.data<std::byte>();
  return Bytes(data, data + part.size());
}

}  // namespace

// One ROUTER or DEALER, watched by its actor. Its descriptor tells only *that* something changed, once: so ZMQ_EVENTS
// is read again after every send and receive, and what it shows is worked off in a turn of its own.
class ZmqChannel::Socket : public std::enable_shared_from_this<ZmqChannel::Socket> {
 public:
  Socket(Actor& actor, zmq::socket_type type, std::size_t peers_max)
      : actor_(actor), router_(type == zmq::socket_type::router), socket_(context_, type), peers_(peers_max) {
    set_common(socket_);
  }

  zmq::socket_t& raw() { return socket_; }
  std::string address;
  std::uint64_t frames_refused = 0;

  void close() {
    closed_ = true;
    if (descriptor_ >= 0) actor_.unwatch(descriptor_);
    actor_.clock().cancel(retry_timer_);
  }

  void start(FrameHandler handler) {
    VCKPT_ASSERT(!handler_ && actor_.on_this_thread());
    handler_ = std::move(handler);
    descriptor_ = socket_.get(zmq::sockopt::fd);
    actor_.watch(descriptor_, EPOLLIN, [this](std::uint32_t) { turn(); });
    post_turn();
  }

  Result<void> send(const PeerId& peer, Bytes frame) {
    VCKPT_ASSERT(actor_.on_this_thread());
    VCKPT_TRY_VOID(check_frame(peer, frame));
    if (!router_ && peer != coordinator_peer) return unavailable("a worker knows no peer '" + peer + "'");
    const auto waiting = queues_.find(peer);
    if (waiting == queues_.end()) {
      const auto outcome = try_send(peer, frame);
      notice_events();
      if (outcome == Outcome::sent) return {};
      if (outcome == Outcome::gone) {
        peers_.forget(peer);
        return unavailable("peer '" + peer + "' is not connected");
      }
    }
    auto& queue =
        waiting != queues_.end() ? waiting->second : queues_.try_emplace(peer, channel_queue_bytes_max).first->second;
    VCKPT_TRY_VOID(queue.push(peer, std::move(frame)));
    arm_retry();
    return {};
  }

  void drop(const PeerId& peer) {
    queues_.erase(peer);
    peers_.forget(peer);
  }

 private:
  enum class Outcome { sent, full, gone };

  Outcome try_send(const PeerId& peer, const Bytes& frame) {
    constexpr auto at_once = zmq::send_flags::dontwait;
    try {
      if (router_ && !socket_.send(zmq::buffer(peer), at_once | zmq::send_flags::sndmore)) return Outcome::full;
      return socket_.send(zmq::buffer(frame.data(), frame.size()), at_once) ? Outcome::sent : Outcome::full;
    } catch (const zmq::error_t& error) {
      // EHOSTUNREACH: ROUTER knows no such peer, now or in the midst of the frame. Nothing else can be waited for.
      return error.num() == EINTR ? Outcome::full : Outcome::gone;
    }
  }

  void flush() {
    for (auto entry = queues_.begin(); entry != queues_.end();) {
      auto& [peer, queue] = *entry;
      auto outcome = Outcome::sent;
      while (!queue.empty() && (outcome = try_send(peer, queue.front())) == Outcome::sent) queue.pop();
      if (outcome == Outcome::gone) peers_.forget(peer);
      entry = queue.empty() || outcome == Outcome::gone ? queues_.erase(entry) : std::next(entry);
    }
  }

  // One step of work: hand over what waits, deliver what came, and look again.
  void turn() {
    const auto self = shared_from_this();
    turn_posted_ = false;
    flush();
    for (int i = 0; i < turn_frames_max && !closed_ && readable(); ++i) {
      auto received = receive();
      if (!received) continue;
      auto& [peer, frame] = *received;
      if (router_ && !peers_.admit(peer, actor_.clock().now())) {
        ++frames_refused;
        continue;
      }
      handler_(peer, std::move(frame));
    }
    if (closed_) return;
    notice_events();
    if (!queues_.empty()) arm_retry();
  }

  // Nothing when the message was malformed: not one frame of a sane size (behind its routing id).
  std::optional<std::pair<PeerId, Bytes>> receive() {
    std::pair<PeerId, Bytes> received{coordinator_peer, {}};
    int part_count = 0;
    const int parts_wanted = router_ ? 2 : 1;
    bool more = true;
    while (more) {
      zmq::message_t part;
      try {
        if (!socket_.recv(part, zmq::recv_flags::dontwait)) return std::nullopt;
      } catch (const zmq::error_t&) {
        return std::nullopt;
      }
      ++part_count;
      more = part.more();
      if (part_count == parts_wanted) {
        received.second = to_bytes(part);
      } else if (part_count == 1) {
        received.first = part.to_string();
      }
    }
    const bool whole = part_count == parts_wanted && !received.second.empty() && !received.first.empty() &&
                       received.first.size() <= routing_id_bytes_max;
    if (!whole) ++frames_refused;
    return whole ? std::optional(std::move(received)) : std::nullopt;
  }

  bool readable() {
    try {
      return (socket_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
    } catch (const zmq::error_t&) {
      return false;
    }
  }

  void notice_events() {
    if (handler_ && readable()) post_turn();
  }

  void post_turn() {
    if (std::exchange(turn_posted_, true)) return;
    actor_.post([weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && !self->closed_) self->turn();
    });
  }

  // Room for one peer may be noticed while we send to another, and is then not told again: so while frames wait, we
  // also look by the clock.
  void arm_retry() {
    if (retry_timer_ != 0) return;
    retry_timer_ = actor_.clock().call_at(actor_.clock().now() + retry_interval, [this] {
      retry_timer_ = 0;
      flush();
      notice_events();
      if (!queues_.empty()) arm_retry();
    });
  }

  Actor& actor_;
  const bool router_;
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  int descriptor_ = -1;
  bool closed_ = false;
  bool turn_posted_ = false;
  TimerId retry_timer_ = 0;
  FrameHandler handler_;
  std::unordered_map<PeerId, FrameQueue> queues_;  // only of peers for whom frames wait
  PeerTable peers_;
};

ZmqChannel::ZmqChannel(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

ZmqChannel::~ZmqChannel() { socket_->close(); }

Result<std::unique_ptr<ZmqChannel>> ZmqChannel::bind(Actor& actor, const ZmqBind& where) {
  VCKPT_TRY(const auto host, resolve_host(where.host));
  const std::uint64_t open_files_max = raise_open_files_max();
  const std::uint64_t peers_possible = open_files_max - std::min(open_files_max, open_files_reserve);
  if (where.peers_max > peers_possible) {
    return invalid(std::to_string(where.peers_max) + " workers need as many open files and " +
                   std::to_string(open_files_reserve) + " more, and the limit is " + std::to_string(open_files_max));
  }
  const std::string port = where.port == 0 ? "*" : std::to_string(where.port);
  const std::string what = "bind to host " + where.host + " port " + port;
  try {
    auto socket = std::make_shared<Socket>(actor, zmq::socket_type::router,
                                           where.peers_max == 0 ? peers_possible : where.peers_max);
    auto& raw = socket->raw();
    raw.set(zmq::sockopt::router_mandatory, true);
    // A routing id is random: who comes again under the same one is the same process, whose old connection is dead.
    raw.set(zmq::sockopt::router_handover, true);
    raw.set(zmq::sockopt::backlog, backlog_connections);
    raw.set(zmq::sockopt::ipv6, host.ipv6);
    raw.bind("tcp://" + host.bracketed() + ":" + port);
    socket->address = raw.get(zmq::sockopt::last_endpoint);
    if (host.any) socket->address = "tcp://" + this_host() + socket->address.substr(socket->address.rfind(':'));
    return std::unique_ptr<ZmqChannel>(new ZmqChannel(std::move(socket)));
  } catch (const zmq::error_t& error) {
    return translate(what, error);
  }
}

Result<std::unique_ptr<ZmqChannel>> ZmqChannel::connect(Actor& actor, const std::string& endpoint,
                                                        Incarnation incarnation) {
  const std::string what = "connect to '" + endpoint + "'";
  if (!endpoint.starts_with("tcp://")) return invalid(what + ": not an endpoint of the form tcp://host:port");
  try {
    auto socket = std::make_shared<Socket>(actor, zmq::socket_type::dealer, 1);
    auto& raw = socket->raw();
    raw.set(zmq::sockopt::routing_id, worker_peer(incarnation));
    raw.set(zmq::sockopt::immediate, true);  // frames wait in our queue, where drop finds them
    raw.set(zmq::sockopt::reconnect_ivl, reconnect_ms);
    raw.set(zmq::sockopt::reconnect_ivl_max, reconnect_ms_max);
    raw.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
    raw.connect(endpoint);
    socket->address = endpoint;
    return std::unique_ptr<ZmqChannel>(new ZmqChannel(std::move(socket)));
  } catch (const zmq::error_t& error) {
    return translate(what, error);
  }
}

const std::string& ZmqChannel::address() const { return socket_->address; }
std::uint64_t ZmqChannel::frames_refused() const { return socket_->frames_refused; }
void ZmqChannel::on_frame(FrameHandler handler) { socket_->start(std::move(handler)); }
Result<void> ZmqChannel::send(const PeerId& peer, Bytes frame) { return socket_->send(peer, std::move(frame)); }
void ZmqChannel::drop(const PeerId& peer) { socket_->drop(peer); }

}  // namespace vckpt
