#include "tests/support/host_transports.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/actor.h"
#include "runtime/host_transport.h"
#include "tests/support/actor_world.h"

namespace vckpt::testing {
namespace {

enum class Hosts : std::uint8_t { one, many };

class HostWorld final : public TransportWorld {
 public:
  HostWorld(std::size_t rank_count, Hosts hosts) {
    HostTransportOptions options;
    if (hosts == Hosts::many) options = {LocalSockets::off, "127.0.0.1"};
    actor_.call([&] {
      for (std::uint32_t i = 0; i < rank_count; ++i) {
        auto listening = HostTransport::listen(actor_, options);
        VCKPT_ASSERT(listening.has_value());
        ranks_.push_back(std::move(listening).value());
        peers_.push_back({Rank{i}, hosts == Hosts::many ? "host" + std::to_string(i) : "alpha",
                          ranks_.back()->address(), Incarnation{0xF00D + i}});
      }
    });
  }
  ~HostWorld() override {
    actor_.call([this] { ranks_.clear(); });
  }

  void run(std::function<void()> step) override { run_on(actor_, step); }
  bool settle(std::function<bool()> reached) override { return settle_on(actor_, reached); }
  std::size_t rank_count() const override { return peers_.size(); }
  std::string host(std::size_t rank) const override { return peers_.at(rank).host; }
  Transport& rank(std::size_t index) override { return *ranks_.at(index); }
  void begin(std::size_t rank, std::uint32_t generation) override {
    ranks_.at(rank)->begin(peers_.at(rank).rank, peers_, generation);
  }
  void end_rank(std::size_t index) override { ranks_.at(index).reset(); }

  std::span<std::byte> memory(std::size_t length_bytes) override { return memory_.emplace_back(length_bytes); }
  void write(std::span<std::byte> memory, std::span<const std::byte> bytes) override {
    VCKPT_ASSERT(memory.size() == bytes.size());
    std::copy(bytes.begin(), bytes.end(), memory.begin());
  }
  Bytes read(std::span<const std::byte> memory) override { return Bytes(memory.begin(), memory.end()); }

 private:
  std::deque<Bytes> memory_;
  Actor actor_{"transports"};
  std::vector<std::unique_ptr<HostTransport>> ranks_;
  std::vector<Peer> peers_;
};

}  // namespace

std::unique_ptr<TransportWorld> make_unix_world(std::size_t rank_count) {
  return std::make_unique<HostWorld>(rank_count, Hosts::one);
}

std::unique_ptr<TransportWorld> make_tcp_world(std::size_t rank_count) {
  return std::make_unique<HostWorld>(rank_count, Hosts::many);
}

}  // namespace vckpt::testing
