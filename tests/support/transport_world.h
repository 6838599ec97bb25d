// Some ranks joined by one kind of transport, as the contract suite drives them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "runtime/transport.h"
#include "schema/codec.h"

namespace vckpt::testing {

class TransportWorld {
 public:
  virtual ~TransportWorld() = default;
  // Runs `step` where the transports live; nothing moves meanwhile.
  virtual void run(std::function<void()> step) = 0;
  // Lets the world go on until `reached` (asked where the transports live) or some ten seconds have passed: its last
  // answer.
  virtual bool settle(std::function<bool()> reached) = 0;

  virtual std::size_t rank_count() const = 0;
  virtual std::string host(std::size_t rank) const = 0;
  // Only inside run and settle.
  virtual Transport& rank(std::size_t index) = 0;
  virtual void begin(std::size_t rank, std::uint32_t generation) = 0;
  virtual void end_rank(std::size_t index) = 0;

  // Memory for slices and targets, zero at first, gone with the world. Tests touch it by write and read only: there are
  // worlds where the host must not.
  virtual std::span<std::byte> memory(std::size_t length_bytes) = 0;
  virtual void write(std::span<std::byte> memory, std::span<const std::byte> bytes) = 0;
  virtual Bytes read(std::span<const std::byte> memory) = 0;
};

using MakeTransportWorld = std::function<std::unique_ptr<TransportWorld>(std::size_t rank_count)>;

}  // namespace vckpt::testing
