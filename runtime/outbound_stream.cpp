#include "runtime/outbound_stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "schema/digest.h"

namespace vckpt {
namespace {

using namespace std::chrono_literals;

constexpr auto redial_interval = 10ms;
constexpr int frames_per_turn = 16;  // then others get their turn
constexpr std::uint32_t end_events = EPOLLIN | EPOLLRDHUP;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

OutboundStream::OutboundStream(Actor& actor, StreamKind kind, StreamAddress target, const Greeting& hello,
                               Events events)
    : actor_(actor), kind_(kind), target_(std::move(target)), hello_(hello), events_(std::move(events)) {}

OutboundStream::~OutboundStream() { pause(); }

void OutboundStream::start() {
  VCKPT_ASSERT(state_ == State::idle);
  state_ = State::dialing;
  dial();
}

void OutboundStream::dial() {
  if (kind_ == StreamKind::local) {
    auto dialed = dial_unix(target_.unix_name);
    if (!dialed) return end(dialed.error().message);
    if (!dialed.value()) {
      redial_timer_ = actor_.clock().call_at(actor_.clock().now() + redial_interval, [this] {
        redial_timer_ = 0;
        dial();
      });
      return;
    }
    socket_ = *std::move(dialed).value();
  } else {
    auto dialed = dial_tcp(target_.tcp_host, target_.tcp_port);
    if (!dialed) return end(dialed.error().message);
    socket_ = std::move(dialed).value();
  }
  watch(EPOLLOUT | end_events);
}

void OutboundStream::watch(std::uint32_t wanted) {
  if (wanted == watched_) return;
  watched_ = wanted;
  actor_.watch(socket_.number(), wanted, [weak = weak_from_this()](std::uint32_t ready) {
    if (const auto self = weak.lock()) self->on_events(ready);
  });
}

void OutboundStream::on_events(std::uint32_t ready) {
  if (state_ == State::dialing) {
    if (const int error = connection_error(socket_); error != 0) return end(std::string("dialing: ") + strerror(error));
    if ((ready & EPOLLOUT) == 0) return;
    greeting_ = encode(hello_);
    state_ = State::hello;
  }
  if (state_ == State::hello) return say_hello();
  if (state_ == State::welcome) return hear_welcome();
  if ((ready & ~std::uint32_t{EPOLLOUT}) != 0) hear_end();
  if (state_ == State::open) write_frames();
}

void OutboundStream::say_hello() {
  const auto count = ::send(socket_.number(), greeting_.data() + greeting_done_, greeting_.size() - greeting_done_,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) {
    if (would_block(errno) || errno == EINTR) return;
    return end(std::string("greeting: ") + strerror(errno));
  }
  greeting_done_ += static_cast<std::size_t>(count);
  if (greeting_done_ < greeting_.size()) return;
  greeting_done_ = 0;
  state_ = State::welcome;
  watch(end_events);
}

void OutboundStream::hear_welcome() {
  const auto count =
      ::recv(socket_.number(), greeting_.data() + greeting_done_, greeting_.size() - greeting_done_, MSG_DONTWAIT);
  if (count < 0 && (would_block(errno) || errno == EINTR)) return;
  if (count <= 0) return end("it closed the connection before it answered");
  greeting_done_ += static_cast<std::size_t>(count);
  if (greeting_done_ < greeting_.size()) return;
  const Greeting expected{GreetingKind::welcome, hello_.generation,     hello_.to,
                          hello_.from,           hello_.to_incarnation, hello_.from_incarnation};
  const auto welcome = decode_greeting(greeting_);
  if (!welcome || welcome.value() != expected) return end("somebody else answers at its address");
  state_ = State::open;
  write_frames();
}

void OutboundStream::hear_end() {
  std::byte byte{};
  const auto count = ::recv(socket_.number(), &byte, sizeof byte, MSG_DONTWAIT);
  if (count < 0 && (would_block(errno) || errno == EINTR)) return;
  if (count < 0) return end(std::string("the connection broke: ") + strerror(errno));
  end(count == 0 ? "it closed the connection" : "it spoke out of turn");
}

void OutboundStream::wake() {
  if (state_ == State::open && (watched_ & EPOLLOUT) == 0) write_frames();
}

void OutboundStream::write_frames() {
  const auto self = shared_from_this();
  for (int i = 0; i < frames_per_turn; ++i) {
    if (!current_) {
      current_ = events_.next();
      if (!current_) return watch(end_events);
      const bool checked = kind_ == StreamKind::network && current_->kind == FrameKind::data;
      header_ = encode(FrameHeader{current_->kind, hello_.generation, current_->round, current_->offset_bytes,
                                   current_->length_bytes, checked, checked ? crc32c(current_->payload) : 0});
      written_bytes_ = 0;
    }
    if (!write_current()) return;
    const OutgoingFrame frame = *std::exchange(current_, std::nullopt);
    events_.sent(frame);
    if (state_ != State::open) return;
  }
  watch(EPOLLOUT | end_events);
}

// False when it has to wait, or cannot go on.
bool OutboundStream::write_current() {
  const std::uint64_t length_bytes = header_.size() + current_->payload.size();
  while (written_bytes_ < length_bytes) {
    iovec parts[2];
    int part_count = 0;
    if (written_bytes_ < header_.size()) {
      parts[part_count++] = {header_.data() + written_bytes_, header_.size() - written_bytes_};
    }
    const std::uint64_t payload_done = written_bytes_ - std::min<std::uint64_t>(written_bytes_, header_.size());
    const auto payload = current_->payload.subspan(payload_done);
    if (!payload.empty()) parts[part_count++] = {const_cast<std::byte*>(payload.data()), payload.size()};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<std::size_t>(part_count);
    const auto count = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && would_block(errno)) {
      watch(EPOLLOUT | end_events);
      return false;
    }
    if (count < 0) {
      end(std::string("the connection broke: ") + strerror(errno));
      return false;
    }
    written_bytes_ += static_cast<std::uint64_t>(count);
    events_.moved(*current_);
  }
  return true;
}

void OutboundStream::end(const std::string& why) {
  const auto self = shared_from_this();
  pause();
  events_.ended(why);
}

void OutboundStream::pause() {
  if (state_ == State::ended) return;
  state_ = State::ended;
  current_.reset();
  actor_.clock().cancel(redial_timer_);
  if (socket_) actor_.unwatch(socket_.number());
}

}  // namespace vckpt
