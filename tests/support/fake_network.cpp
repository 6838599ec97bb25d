#include "tests/support/fake_network.h"

#include <utility>

namespace vckpt {
namespace {

constexpr std::size_t on_the_way_max = 64;  // frames; the rest waits in the sender's queue
constexpr auto reconnect_interval = std::chrono::milliseconds(100);

}  // namespace

class FakeNetwork::CoordinatorEnd final : public Channel {
 public:
  CoordinatorEnd(FakeNetwork& network, std::string endpoint) : network_(network), endpoint_(std::move(endpoint)) {
    network_.coordinators_[endpoint_] = this;
  }
  ~CoordinatorEnd() override {
    network_.coordinators_.erase(endpoint_);
    for (auto& [worker, link] : network_.links_) {
      if (link.endpoint == endpoint_) network_.break_link(link);
    }
  }
  CoordinatorEnd(const CoordinatorEnd&) = delete;
  CoordinatorEnd& operator=(const CoordinatorEnd&) = delete;

  void on_frame(FrameHandler frame_handler) override { handler = std::move(frame_handler); }
  Result<void> send(const PeerId& peer, Bytes frame) override {
    VCKPT_TRY_VOID(check_frame(peer, frame));
    Link* const link = network_.find(peer);
    if (link == nullptr || !link->up || link->endpoint != endpoint_) {
      return unavailable("peer '" + peer + "' is not connected");
    }
    return network_.send(*link, Toward::worker, std::move(frame));
  }
  void drop(const PeerId& peer) override {
    Link* const link = network_.find(peer);
    if (link != nullptr && link->endpoint == endpoint_) link->down_way.queue.clear();
  }

  FrameHandler handler;

 private:
  FakeNetwork& network_;
  const std::string endpoint_;
};

class FakeNetwork::WorkerEnd final : public Channel {
 public:
  WorkerEnd(FakeNetwork& network, PeerId self) : network_(network), self_(std::move(self)) {}
  ~WorkerEnd() override {
    network_.break_link(*network_.find(self_));
    network_.links_.erase(self_);
  }
  WorkerEnd(const WorkerEnd&) = delete;
  WorkerEnd& operator=(const WorkerEnd&) = delete;

  void on_frame(FrameHandler frame_handler) override { handler = std::move(frame_handler); }
  Result<void> send(const PeerId& peer, Bytes frame) override {
    VCKPT_TRY_VOID(check_frame(peer, frame));
    if (peer != coordinator_peer) return unavailable("a worker knows no peer '" + peer + "'");
    return network_.send(*network_.find(self_), Toward::coordinator, std::move(frame));
  }
  void drop(const PeerId& peer) override {
    if (peer == coordinator_peer) network_.find(self_)->up_way.queue.clear();
  }

  FrameHandler handler;

 private:
  FakeNetwork& network_;
  const PeerId self_;
};

Result<std::unique_ptr<Channel>> FakeNetwork::bind(const std::string& endpoint) {
  if (coordinators_.contains(endpoint)) return unavailable("bind to " + endpoint + ": it is in use");
  return std::unique_ptr<Channel>(std::make_unique<CoordinatorEnd>(*this, endpoint));
}

std::unique_ptr<Channel> FakeNetwork::connect(const std::string& endpoint, Incarnation incarnation) {
  const PeerId worker = worker_peer(incarnation);
  VCKPT_ASSERT(!links_.contains(worker));
  auto end = std::make_unique<WorkerEnd>(*this, worker);
  Link& link = links_[worker];
  link.endpoint = endpoint;
  link.worker = worker;
  link.end = end.get();
  attempt_soon(worker);
  return end;
}

FakeNetwork::Link* FakeNetwork::find(const PeerId& worker) {
  const auto link = links_.find(worker);
  return link == links_.end() ? nullptr : &link->second;
}

Duration FakeNetwork::delay() {
  return Duration(static_cast<std::int64_t>(random_() % (static_cast<std::uint64_t>(faults.delay_max.count()) + 1)));
}

void FakeNetwork::attempt_soon(const PeerId& worker) {
  clock_.call_at(clock_.now() + delay(), [this, worker] { attempt(worker); });
}

void FakeNetwork::attempt(const PeerId& worker) {
  Link* const link = find(worker);
  if (link == nullptr || link->up) return;
  const auto coordinator = coordinators_.find(link->endpoint);
  const bool possible = coordinator != coordinators_.end() && coordinator->second->handler && link->end->handler;
  if (!possible || link->cut) {
    clock_.call_at(clock_.now() + reconnect_interval, [this, worker] { attempt(worker); });
    return;
  }
  link->up = true;
  link->era = ++last_era_;
  flush(*link, Toward::coordinator);
}

void FakeNetwork::break_link(Link& link) {
  if (!link.up) return;
  link.up = false;
  lost_frames_ += link.up_way.on_the_way + link.down_way.on_the_way;
  link.up_way.on_the_way = 0;
  link.down_way.on_the_way = 0;
  link.down_way.queue.clear();  // the coordinator's end forgets a peer with its connection, a worker's queue stays
  clock_.call_at(clock_.now() + reconnect_interval, [this, worker = link.worker] { attempt(worker); });
}

void FakeNetwork::disconnect(const PeerId& worker) {
  if (Link* const link = find(worker)) break_link(*link);
}

void FakeNetwork::cut(const PeerId& worker) {
  if (Link* const link = find(worker)) {
    link->cut = true;
    break_link(*link);
  }
}

void FakeNetwork::heal(const PeerId& worker) {
  if (Link* const link = find(worker)) link->cut = false;
}

Result<void> FakeNetwork::send(Link& link, Toward toward, Bytes frame) {
  const PeerId& target = toward == Toward::coordinator ? coordinator_peer : link.worker;
  VCKPT_TRY_VOID(link.way(toward).queue.push(target, std::move(frame)));
  flush(link, toward);
  return {};
}

void FakeNetwork::flush(Link& link, Toward toward) {
  Way& way = link.way(toward);
  while (link.up && !way.queue.empty() && way.on_the_way < on_the_way_max) {
    Bytes frame = way.queue.front();
    way.queue.pop();
    ++sent_frames_;
    if (happens(faults.dropped_per_mille)) {
      ++lost_frames_;
      continue;
    }
    ++way.on_the_way;
    if (happens(faults.broken_per_mille)) return break_link(link);
    way.last_arrival = std::max(way.last_arrival, clock_.now() + delay());
    clock_.call_at(way.last_arrival,
                   [this, worker = link.worker, toward, era = link.era, arriving = std::move(frame)]() mutable {
                     arrive(worker, toward, era, std::move(arriving));
                   });
  }
}

void FakeNetwork::arrive(const PeerId& worker, Toward toward, std::uint64_t era, Bytes frame) {
  Link* const link = find(worker);
  if (link == nullptr || !link->up || link->era != era) return;  // counted as lost when it broke
  --link->way(toward).on_the_way;
  const bool up = toward == Toward::coordinator;
  const auto handler = up ? coordinators_.at(link->endpoint)->handler : link->end->handler;
  flush(*link, toward);
  handler(up ? worker : coordinator_peer, std::move(frame));  // may destroy its channel
}

}  // namespace vckpt
