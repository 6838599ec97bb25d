#include "tests/coordinator/office.h"

#include <algorithm>

#include "schema/checked.h"
#include "schema/digest.h"

namespace vckpt {

using namespace std::chrono_literals;

Result<void> OfficeChannel::send(const PeerId& peer, Bytes frame) {
  clock_.post([this, peer, frame = std::move(frame)] {
    if (deliver) deliver(peer, frame);
  });
  return {};
}

void OfficeChannel::receive(const PeerId& peer, Bytes frame) {
  clock_.post([this, peer, frame = std::move(frame)] {
    if (handler_) handler_(peer, frame);
  });
}

Office::Office(VirtualClock& time, MemoryDisk& disk, std::uint32_t count, std::uint64_t seed)
    : clock(time), ranks(count), process(time), channel(time), storage(process, disk), compute(process), run_nonce{42} {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    workers.emplace_back(rank);
    workers.back().envelope.run = run_nonce;
    workers.back().envelope.rank = Rank{rank};
    workers.back().envelope.incarnation = Incarnation{seed * 1000 + rank + 1};
  }
  channel.deliver = [this](const PeerId& peer, const Bytes& frame) {
    for (auto& worker : workers) {
      if (peer != std::to_string(worker.rank)) continue;
      const auto whole = worker.joiner.add(frame);
      if (whole && !whole->empty()) hear(worker, decode_message(*whole).value());
    }
  };
  CoordinatorOptions options;
  options.settings.host = "head";
  options.settings.deadline = 2s;
  options.settings.grace = 1s;
  options.settings.nonce = Nonce{seed + 900};
  options.run_name = "office";
  options.run_nonce = run_nonce;
  options.endpoint = "memory:head";
  CoordinatorActor::Hooks hooks;
  hooks.serving = [this](const EpochRecord& epoch) { serving = epoch; };
  hooks.exited = [this](std::optional<Error> why) {
    exited = true;
    error = std::move(why);
  };
  hooks.log = [this](const std::string& line) { lines.push_back(line); };
  coordinator = std::make_unique<CoordinatorActor>(CoordinatorActor::Seams{process, channel, storage, compute},
                                                   std::move(options), std::move(hooks));
}

bool Office::run(const std::function<bool()>& finished) {
  return clock.run_until([&] { return finished() || exited; }, clock.now() + 60s) && finished();
}

bool Office::start() {
  coordinator->start();
  return run([&] { return serving.has_value(); });
}

bool Office::join() {
  for (auto& worker : workers) {
    Join join;
    join.session_name = "s";
    join.world_size = ranks;
    join.host = "node-" + std::to_string(worker.rank);
    say(worker, join);
  }
  process.call_at(clock.now() + 500ms, [this] { repeat(); });
  return run([&] {
    return std::all_of(workers.begin(), workers.end(), [](const OfficeWorker& worker) { return worker.joined; });
  });
}

LayoutBody Office::body() const {
  LayoutBody body;
  body.tensors = {{"w", DType::u8, {ranks * bytes_per_rank}}};
  Entry entry;
  entry.cuts = {{0, ranks, 0}};
  body.entries = {entry};
  return body;
}

void Office::save(std::uint64_t ordinal, std::uint64_t step) {
  asked_[ordinal] = step;
  for (auto& worker : workers) {
    SaveCall call;
    call.ordinal = Ordinal{ordinal};
    call.step = Step{step};
    call.sections = {{"model", digest(body()), {worker.rank}}};
    if (!worker.results.contains(ordinal)) say(worker, call);
  }
}

// The heartbeat, and requests again until they are answered.
void Office::repeat() {
  for (auto& worker : workers) say(worker, Progress{Ordinal{1}, Phase::write, ++worker.messages});
  for (const auto& [ordinal, step] : asked_) {
    if (!ended(ordinal)) save(ordinal, step);
  }
  process.call_at(clock.now() + 500ms, [this] { repeat(); });
}

bool Office::ended(std::uint64_t ordinal) const {
  return std::all_of(workers.begin(), workers.end(),
                     [&](const OfficeWorker& worker) { return worker.results.contains(ordinal); });
}

bool Office::committed(std::uint64_t ordinal) const {
  return std::any_of(workers.begin(), workers.end(), [&](const OfficeWorker& worker) {
    const auto found = worker.results.find(ordinal);
    return found != worker.results.end() && std::holds_alternative<Committed>(found->second);
  });
}

void Office::say(OfficeWorker& worker, Message message, Attempt attempt) {
  auto envelope = worker.envelope;
  envelope.attempt = attempt;
  for (auto& frame : split_frames(encode(EnvelopedMessage{envelope, std::move(message)}), ++worker.messages)) {
    channel.receive(std::to_string(worker.rank), std::move(frame));
  }
}

void Office::hear(OfficeWorker& worker, const EnvelopedMessage& message) {
  if (const auto* joined = std::get_if<Joined>(&message.message)) {
    worker.envelope.epoch = message.envelope.epoch;
    worker.envelope.session = joined->session;
    worker.joined = true;
  } else if (const auto* refused = std::get_if<Refused>(&message.message)) {
    worker.refused = refused->error;
  } else if (std::holds_alternative<NeedBodies>(message.message)) {
    say(worker, Bodies{{body()}});
  } else if (const auto* slice = std::get_if<SaveSlice>(&message.message)) {
    worker.slices[slice->ordinal.value] = *slice;
    Receipt receipt;
    receipt.ordinal = slice->ordinal;
    receipt.plan = slice->plan;
    for (const auto& section : slice->sections) {
      FileRecord file;
      file.section = section.section;
      file.rank = Rank{worker.rank};
      file.header_bytes = 4096;
      file.data_bytes = data_bytes(place_pieces(section.tensors, section.pieces));
      file.chunk_digests.assign(divide_up(file.data_bytes, chunk_bytes), 3);
      receipt.files.push_back(file);
    }
    say(worker, receipt, message.envelope.attempt);
  } else if (const auto* committed = std::get_if<Committed>(&message.message)) {
    worker.results[committed->ordinal.value] = *committed;
  } else if (const auto* aborted = std::get_if<Aborted>(&message.message)) {
    worker.results[aborted->ordinal.value] = *aborted;
  } else if (const auto* loaded = std::get_if<Loaded>(&message.message)) {
    worker.results[loaded->ordinal.value] = *loaded;
  } else if (const auto* load = std::get_if<LoadSlice>(&message.message)) {
    worker.load = *load;
  }
}

}  // namespace vckpt
