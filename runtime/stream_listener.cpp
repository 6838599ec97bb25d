#include "runtime/stream_listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace vckpt {
namespace {

using namespace std::chrono_literals;

constexpr int connections_per_turn = 64;
constexpr auto pause_interval = 100ms;  // when the process has no descriptor left; else the loop would spin on accept

}  // namespace

StreamListener::StreamListener(Actor& actor, StreamKind kind, Descriptor socket, Accepted accepted)
    : actor_(actor), kind_(kind), socket_(std::move(socket)), accepted_(std::move(accepted)) {
  watch();
}

StreamListener::~StreamListener() {
  actor_.clock().cancel(pause_timer_);
  actor_.unwatch(socket_.number());
}

void StreamListener::watch() {
  actor_.watch(socket_.number(), EPOLLIN, [this](std::uint32_t) { accept_some(); });
}

void StreamListener::accept_some() {
  for (int i = 0; i < connections_per_turn; ++i) {
    Descriptor socket(::accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      if (kind_ == StreamKind::local && !same_user(socket)) continue;
      if (kind_ == StreamKind::network) tune_tcp(socket);
      accepted_(kind_, std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    actor_.unwatch(socket_.number());
    pause_timer_ = actor_.clock().call_at(actor_.clock().now() + pause_interval, [this] {
      pause_timer_ = 0;
      watch();
    });
    return;
  }
}

}  // namespace vckpt
