#include "runtime/inbound_stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "schema/digest.h"

namespace vckpt {
namespace {

constexpr int reads_per_turn = 16;  // then others get their turn

}  // namespace

InboundStream::InboundStream(Actor& actor, StreamKind kind, Descriptor socket, std::span<std::byte> scratch)
    : actor_(actor), kind_(kind), socket_(std::move(socket)), scratch_(scratch) {}

InboundStream::~InboundStream() { pause(); }

void InboundStream::start(Events events) {
  events_ = std::move(events);
  actor_.watch(socket_.number(), EPOLLIN | EPOLLRDHUP, [weak = weak_from_this()](std::uint32_t) {
    if (const auto self = weak.lock()) self->on_readable();
  });
}

bool InboundStream::welcome(Rank self, Incarnation incarnation) {
  VCKPT_ASSERT(state_ == State::parked);
  const auto answer = encode(
      Greeting{GreetingKind::welcome, hello_->generation, self, hello_->from, incarnation, hello_->from_incarnation});
  // The first bytes on this way: a socket that does not take them at once is broken.
  const auto count = ::send(socket_.number(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count != static_cast<ssize_t>(answer.size())) return false;
  state_ = State::open;
  return true;
}

void InboundStream::on_readable() {
  if (state_ == State::hello) return read_hello();
  if (state_ == State::parked) {
    // It must wait for the welcome: whatever comes is its end.
    return end(unavailable("it did not wait for the welcome"));
  }
  for (int i = 0; i < reads_per_turn && state_ == State::open; ++i) {
    if (!read_some()) return;
  }
}

void InboundStream::read_hello() {
  const auto count = receive(std::span(greeting_).subspan(head_bytes_));
  if (!count) return;
  head_bytes_ += *count;
  if (head_bytes_ < greeting_.size()) return;
  head_bytes_ = 0;
  auto greeting = decode_greeting(greeting_);
  if (!greeting) return end(greeting.error());
  if (greeting.value().kind != GreetingKind::hello) return end(corrupt("a welcome where a hello belongs"));
  hello_ = greeting.value();
  state_ = State::parked;
  events_.hello(*hello_);
}

// False when there is nothing to read now, or never again.
bool InboundStream::read_some() { return payload_left_bytes_ > 0 ? read_payload() : read_header(); }

bool InboundStream::read_header() {
  const auto count = receive(std::span(header_).subspan(head_bytes_));
  if (!count) return false;
  head_bytes_ += *count;
  if (head_bytes_ < header_.size()) return true;
  head_bytes_ = 0;
  frame_.reset();
  auto header = decode_frame_header(header_);
  if (!header) {
    end(header.error());
    return false;
  }
  frame_ = header.value();
  if (kind_ == StreamKind::network && frame_->payload_bytes() > 0 && !frame_->checked) {
    end(corrupt("it sent bytes without a checksum over a network"));
    return false;
  }
  payload_left_bytes_ = frame_->payload_bytes();
  crc_ = 0;
  events_.frame(*frame_);
  return true;
}

bool InboundStream::read_payload() {
  const auto count = receive(scratch_.first(std::min<std::uint64_t>(scratch_.size(), payload_left_bytes_)));
  if (!count) return false;
  const auto piece = scratch_.first(*count);
  payload_left_bytes_ -= *count;
  if (frame_->checked) {
    crc_ = crc32c(piece, crc_);
    if (payload_left_bytes_ == 0 && crc_ != frame_->payload_crc) {
      end(corrupt("bytes " + std::to_string(frame_->offset_bytes) + " to " +
                  std::to_string(frame_->offset_bytes + frame_->length_bytes) + " arrived with a wrong checksum"));
      return false;
    }
  }
  events_.bytes(*frame_, piece);
  return true;
}

std::optional<std::size_t> InboundStream::receive(std::span<std::byte> target) {
  const auto count =
      uninterrupted([&] { return ::recv(socket_.number(), target.data(), target.size(), MSG_DONTWAIT); });
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) {
    end(unavailable("it closed the connection"));
  } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
    end(unavailable(std::string("the connection broke: ") + strerror(errno)));
  }
  return std::nullopt;
}

void InboundStream::end(const Error& error) {
  const auto self = shared_from_this();
  pause();
  events_.ended(error, frame_);
}

void InboundStream::pause() {
  if (state_ == State::ended) return;
  state_ = State::ended;
  actor_.unwatch(socket_.number());
}

}  // namespace vckpt
