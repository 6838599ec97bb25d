// vckpt-coordinator: serves the sessions of one run on one root, over ZeroMQ and a POSIX file system.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "coordinator/catalog/epochs.h"
#include "coordinator/coordinator_actor.h"
#include "coordinator/predecessor_actor.h"
#include "runtime/actor.h"
#include "runtime/descriptor.h"
#include "runtime/host_address.h"
#include "runtime/posix_storage.h"
#include "runtime/stream_socket.h"
#include "runtime/tbb_compute.h"
#include "runtime/zmq_channel.h"
#include "schema/exit_code.h"

namespace vckpt {
namespace {

constexpr auto refusal_wait = std::chrono::milliseconds(500);
constexpr auto farewell = std::chrono::milliseconds(200);  // for the last messages, when there was an error

struct Arguments {
  std::string root;
  std::string run;
  std::uint32_t ranks = 0;
  std::string bind = "127.0.0.1";
  double deadline_s = 120;
  double grace_s = 30;
  bool insecure = false;
  bool take_over = false;
};

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error_line("vckpt-coordinator", error).c_str());
  return exit_code(error.code);
}

// Only CLI11 and the system's randomness throw here.
Result<Arguments> parse(int argc, char** argv, bool& finished) {
  Arguments arguments;
  CLI::App app("Coordinates saves and loads of one training run: who owns which bytes, what is committed.");
  app.add_option("--root", arguments.root, "folder of the checkpoints; made when missing")->required();
  app.add_option("--run", arguments.run, "name of the run; another name on the same root is refused");
  app.add_option("--ranks", arguments.ranks, "refuse sessions of another world size");
  app.add_option("--bind", arguments.bind, "HOST[:PORT] to listen on; loopback and a free port without");
  app.add_option("--deadline", arguments.deadline_s, "seconds without progress after which a wait ends")
      ->check(CLI::Range(0.1, 1e6));
  app.add_option("--grace", arguments.grace_s, "seconds to leave after SIGTERM")->check(CLI::Range(0.0, 1e6));
  app.add_flag("--insecure", arguments.insecure, "allow an address that other hosts reach, without keys");
  app.add_flag("--take-over", arguments.take_over, "even from a coordinator that lives and has live workers");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    finished = true;
  } catch (const CLI::ParseError& error) {
    return invalid(std::string(error.what()) + " (see --help)");
  }
  if (!finished && arguments.root.empty()) return invalid("--root: the name is empty");
  return arguments;
}

Result<ZmqBind> parse_bind(const Arguments& arguments) {
  ZmqBind where;
  where.host = arguments.bind;
  const auto colon = arguments.bind.rfind(':');
  const bool bare_ipv6 = arguments.bind.find(':') != colon && arguments.bind.find(']') == std::string::npos;
  if (colon != std::string::npos && !bare_ipv6 && arguments.bind.find(']', colon) == std::string::npos) {
    where.host = arguments.bind.substr(0, colon);
    const auto port = arguments.bind.substr(colon + 1);
    const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoul(port) > 65535) return invalid("--bind " + arguments.bind + ": '" + port + "' is no port");
    where.port = static_cast<std::uint16_t>(std::stoul(port));
  }
  if (where.host.size() > 1 && where.host.front() == '[' && where.host.back() == ']') {
    where.host = where.host.substr(1, where.host.size() - 2);
  }
  VCKPT_TRY(const auto address, resolve_host(where.host));
  const bool loopback = !address.any && (address.number.starts_with("127.") || address.number == "::1");
  if (!loopback && !arguments.insecure) {
    return invalid("--bind " + arguments.bind + ": other hosts reach this address, and connections have no keys yet: " +
                   "say --insecure, or bind to loopback");
  }
  return where;
}

std::uint64_t random_number() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

Duration to_duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// A coordinator that was killed, or has left, need not be asked and waited for.
bool nobody_listens(const std::string& endpoint) {
  if (endpoint.empty()) return true;
  const auto parsed = parse_endpoint(endpoint);
  const auto host = parsed ? resolve_host(parsed->host) : Result<HostAddress>(parsed.error());
  return host && refuses_connections(host->number, parsed->port, refusal_wait);
}

// Everything that lives on the actor, from the first look at the root to the exit.
class Program {
 public:
  Program(Actor& actor, Arguments arguments, ZmqBind where, int signals)
      : actor_(actor),
        arguments_(std::move(arguments)),
        where_(std::move(where)),
        signals_(signals),
        storage_(actor, arguments_.root),
        compute_(actor, 2) {
    actor_.watch(signals_, EPOLLIN, [this](std::uint32_t) { on_signal(); });
  }
  ~Program() { actor_.unwatch(signals_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::future<std::optional<Error>> outcome() { return outcome_.get_future(); }

  void begin() {
    if (arguments_.take_over) return serve();
    find_run(storage_, [this](Result<std::optional<RunRecord>> run) {
      if (!run) return finish(run.error());
      if (!*run) return serve();  // nobody was here
      run_ = **run;
      newest_epoch(storage_, [this](Result<std::optional<EpochRecord>> epoch) {
        if (!epoch) return finish(epoch.error());
        if (!*epoch || nobody_listens((*epoch)->endpoint)) return serve();
        ask(**epoch);
      });
    });
  }

 private:
  void ask(const EpochRecord& epoch) {
    const Incarnation incarnation{random_number()};
    auto channel = ZmqChannel::connect(actor_, epoch.endpoint, incarnation);
    if (!channel) return finish(channel.error().with_context("the coordinator before"));
    predecessor_channel_ = *std::move(channel);
    predecessor_.emplace(actor_.clock(), *predecessor_channel_, run_, epoch, incarnation);
    predecessor_->ask([this, host = epoch.host](Result<void> answer) {
      // Not from inside its own callback.
      actor_.post([this, host, answer = std::move(answer)] {
        predecessor_.reset();
        predecessor_channel_.reset();
        if (answer) return serve();
        finish(unavailable(arguments_.root + " is in use: " + answer.error().message + "; --take-over takes it from " +
                           host));
      });
    });
  }

  void serve() {
    auto channel = ZmqChannel::bind(actor_, where_);
    if (!channel) return finish(channel.error());
    channel_ = *std::move(channel);
    CoordinatorOptions options;
    options.settings.host = this_host();
    options.settings.ranks = arguments_.ranks;
    options.settings.deadline = to_duration(arguments_.deadline_s);
    options.settings.grace = to_duration(arguments_.grace_s);
    options.settings.nonce = Nonce{random_number()};
    options.settings.started_unix_s = std::time(nullptr);
    options.run_name = arguments_.run;
    options.run_nonce = Nonce{random_number()};
    options.endpoint = channel_->address();
    CoordinatorActor::Hooks hooks;
    hooks.serving = [this](const EpochRecord& epoch) {
      std::printf("%s\n", epoch.endpoint.c_str());
      std::fflush(stdout);
    };
    hooks.log = [](const std::string& line) { spdlog::info("{}", line); };
    hooks.exited = [this](std::optional<Error> error) { finish(std::move(error)); };
    coordinator_.emplace(CoordinatorActor::Seams{actor_.clock(), *channel_, storage_, compute_}, std::move(options),
                         std::move(hooks));
    coordinator_->start();
  }

  void on_signal() {
    signalfd_siginfo ignored{};
    if (::read(signals_, &ignored, sizeof ignored) != sizeof ignored) return;
    if (coordinator_) return coordinator_->stop();
    finish(std::nullopt);
  }

  void finish(std::optional<Error> error) {
    const auto when = actor_.clock().now() + (error && coordinator_ ? Duration(farewell) : Duration(0));
    actor_.clock().call_at(when, [this, error = std::move(error)] {
      if (!std::exchange(finished_, true)) outcome_.set_value(error);
    });
  }

  Actor& actor_;
  Arguments arguments_;
  ZmqBind where_;
  int signals_;
  PosixStorage storage_;
  TbbCompute compute_;
  RunRecord run_;
  std::unique_ptr<ZmqChannel> predecessor_channel_;
  std::optional<PredecessorActor> predecessor_;
  std::unique_ptr<ZmqChannel> channel_;
  std::optional<CoordinatorActor> coordinator_;
  std::promise<std::optional<Error>> outcome_;
  bool finished_ = false;
};

int run(int argc, char** argv) {
  bool finished = false;
  auto arguments = parse(argc, argv, finished);
  if (!arguments) return fail(arguments.error());
  if (finished) return 0;
  auto where = parse_bind(*arguments);
  if (!where) return fail(where.error());

  auto logger = std::make_shared<spdlog::logger>("coordinator", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("[%H:%M:%S.%e] coordinator: %v");
  if (const char* level = std::getenv("VCKPT_LOG")) logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));

  // Before there is any other thread: SIGTERM is read from a descriptor, by the actor.
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  const Descriptor signals(::signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals.number() < 0) return fail(exhausted("signalfd: no descriptor is left"));

  Actor actor("coordinator");
  std::unique_ptr<Program> program;
  std::future<std::optional<Error>> outcome;
  actor.call([&] {
    program = std::make_unique<Program>(actor, *std::move(arguments), *std::move(where), signals.number());
    outcome = program->outcome();
    program->begin();
  });
  const auto error = outcome.get();
  actor.call([&] { program.reset(); });
  return error ? fail(*error) : 0;
}

}  // namespace
}  // namespace vckpt

int main(int argc, char** argv) { return vckpt::run(argc, argv); }
