#include "worker/load_run.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "schema/digest.h"
#include "worker/cast.h"
#include "worker/packs.h"

namespace vckpt {
namespace {

constexpr std::uint64_t task_bytes_target = 8 << 20;  // of own bytes that one task puts into place

}  // namespace

// One storage read: some chunks of a run.
struct LoadRun::ReadBlock {
  std::uint32_t read = 0;
  std::uint64_t first_chunk = 0;
  std::uint64_t chunk_count = 0;
  std::uint64_t offset_bytes = 0;  // from the data start
  std::span<std::byte> bytes;
  Result<void> verified = internal("verification ended early");
};

struct LoadRun::RoundWork {
  enum class Stage : std::uint8_t { waiting, reading, packing, packed, posted, unpacking, done };

  Round round;
  Stage stage = Stage::waiting;
  std::vector<std::uint32_t> reads;
  std::vector<const SendSlices*> sends;
  Packs packs;  // of sends
  std::vector<const ReceiveSlices*> own;
  std::vector<const ReceiveSlices*> receives;  // from others
  std::uint64_t staging_bytes = 0;
  Lease lease;
  std::map<std::uint32_t, RunBytes> runs;
  std::deque<std::shared_ptr<ReadBlock>> to_read;
  std::size_t blocks_left = 0;
  std::size_t tasks_left = 0;
  std::span<std::byte> packed;
  std::vector<Send> outgoing;                // of sends
  std::vector<Receive> incoming;             // of receives
  std::vector<std::span<std::byte>> staged;  // of receives: where those land that are cast
};

LoadRun::LoadRun(Seams seams, Task task, Callbacks callbacks)
    : seams_(seams), task_(std::move(task)), callbacks_(std::move(callbacks)) {}

LoadRun::~LoadRun() = default;

Result<void> LoadRun::prepare() {
  VCKPT_TRY(geometry_, LoadGeometry::make(task_.slice, task_.table, task_.rank));
  receipt_.ordinal = task_.slice->ordinal;
  plan_rounds();
  return {};
}

LoadRun::RoundWork& LoadRun::round_work(Round round) {
  const auto at = std::lower_bound(rounds_.begin(), rounds_.end(), round,
                                   [](const auto& work, Round wanted) { return work->round < wanted; });
  if (at != rounds_.end() && (*at)->round == round) return **at;
  auto work = std::make_unique<RoundWork>();
  work->round = round;
  return **rounds_.insert(at, std::move(work));
}

void LoadRun::plan_rounds() {
  const LoadSlice& slice = *task_.slice;
  for (std::uint32_t read = 0; read < slice.reads.size(); ++read) {
    RoundWork& work = round_work(slice.reads[read].round);
    work.reads.push_back(read);
    work.staging_bytes += geometry_->run(read).length_bytes;
    receipt_.storage_bytes_read += geometry_->run(read).length_bytes;
  }
  for (const auto& send : slice.sends) round_work(send.round).sends.push_back(&send);
  for (const auto& work : rounds_) {
    work->packs = make_packs(work->sends, [this](const Slice& part) { return geometry_->packed_bytes(part); });
    work->staging_bytes += work->packs.length_bytes;
  }
  for (const auto& receive : slice.receives) {
    RoundWork& work = round_work(receive.round);
    receipt_.bytes_needed += receive.length_bytes;
    if (receive.source == task_.rank) {
      work.own.push_back(&receive);
      continue;
    }
    work.receives.push_back(&receive);
    receipt_.bytes_received += receive.length_bytes;
    if (casts(receive)) work.staging_bytes += receive.length_bytes;
  }
}

void LoadRun::start() {
  seams_.arena.reset_peak();
  if (auto prepared = prepare(); !prepared) return fail(prepared.error());
  ++tasks_in_flight_;
  auto filled = std::make_shared<Result<void>>(internal("filling gaps ended early"));
  seams_.compute.run([this, filled] { *filled = geometry_->fill_gaps(); },
                     [self = shared_from_this(), filled] {
                       --self->tasks_in_flight_;
                       if (!*filled) self->fail(filled->error());
                       self->pump();
                     });
  pump();
}

void LoadRun::resume() { pump(); }

void LoadRun::stop() { fail(aborted("the load was stopped")); }

void LoadRun::move(Phase phase, std::uint64_t bytes) {
  moved_bytes_ += bytes;
  if (!error_ && !ended_) callbacks_.moved(phase, moved_bytes_);
}

void LoadRun::pump() {
  if (error_) return end_if_quiet();
  if (ended_) return;
  // A round that nobody else takes part in ends while it is posted: its staging and its turn are free for the next.
  std::size_t done_before = 0;
  do {
    done_before = rounds_done_;
    admit_rounds();
    if (error_) return;
    read_blocks();
    post_rounds();
  } while (!error_ && !ended_ && rounds_done_ != done_before);
  if (error_ || ended_ || tasks_in_flight_ != 0 || rounds_done_ != rounds_.size()) return;
  ended_ = true;
  receipt_.staging_peak_bytes = seams_.arena.peak_bytes();
  callbacks_.ended(receipt_);
  callbacks_.freed();
}

void LoadRun::admit_rounds() {
  while (next_admitted_ < rounds_.size() && rounds_in_flight_ < rounds_in_flight_max) {
    RoundWork& work = *rounds_[next_admitted_];
    if (work.staging_bytes != 0) {
      auto lease = seams_.arena.lease(work.staging_bytes);
      if (!lease) {
        if (seams_.arena.leased_bytes() == 0) {
          fail(lease.error().with_context("round " + std::to_string(work.round.value)));
        }
        return;
      }
      work.lease = std::move(*lease);
    }
    ++next_admitted_;
    ++rounds_in_flight_;
    lay_out(work);
    work.stage = RoundWork::Stage::reading;
    if (work.blocks_left == 0) pack(work);
  }
}

// Cuts the lease of a round into reads, packed sends and what is received for a cast.
void LoadRun::lay_out(RoundWork& work) {
  auto rest = work.lease.bytes();
  for (const auto read : work.reads) {
    RunBytes run = geometry_->run(read);
    run.data = rest.data();
    rest = rest.subspan(run.length_bytes);
    work.runs[read] = run;
    add_read_blocks(work, read);
  }
  work.blocks_left = work.to_read.size();
  work.packed = rest.first(work.packs.length_bytes);
  rest = rest.subspan(work.packs.length_bytes);
  for (std::size_t i = 0; i < work.sends.size(); ++i) {
    Send send{work.sends[i]->target, {}};
    for (const auto& range : work.packs.sends[i]) {
      send.source.push_back(work.packed.subspan(range.begin, range.end - range.begin));
    }
    work.outgoing.push_back(std::move(send));
  }
  for (const auto* receive : work.receives) {
    const bool staged = casts(*receive);
    work.staged.push_back(staged ? rest.first(receive->length_bytes) : std::span<std::byte>());
    if (staged) rest = rest.subspan(receive->length_bytes);
    work.incoming.push_back({receive->source, receive->length_bytes, {}});
  }
}

void LoadRun::add_read_blocks(RoundWork& work, std::uint32_t read) {
  const ReadRun& chunks = task_.slice->reads[read];
  const RunBytes& run = work.runs[read];
  for (std::uint64_t chunk = 0; chunk < chunks.chunk_count; chunk += read_chunks_max) {
    auto block = std::make_shared<ReadBlock>();
    block->read = read;
    block->first_chunk = chunks.first_chunk + chunk;
    block->chunk_count = std::min(read_chunks_max, chunks.chunk_count - chunk);
    block->offset_bytes = block->first_chunk * chunk_bytes;
    const std::uint64_t begin = chunk * chunk_bytes;
    block->bytes = {run.data + begin, std::min(block->chunk_count * chunk_bytes, run.length_bytes - begin)};
    work.to_read.push_back(std::move(block));
  }
}

bool LoadRun::casts(const ReceiveSlices& receive) const {
  return std::any_of(receive.slices.begin(), receive.slices.end(),
                     [&](const Slice& part) { return geometry_->casts(part); });
}

void LoadRun::read_blocks() {
  for (std::size_t i = 0; i < next_admitted_; ++i) {
    RoundWork& work = *rounds_[i];
    while (!work.to_read.empty() && reads_in_flight_ < reads_in_flight_max) {
      auto block = std::move(work.to_read.front());
      work.to_read.pop_front();
      read(work, std::move(block));
    }
  }
}

void LoadRun::read(RoundWork& work, std::shared_ptr<ReadBlock> block) {
  ++reads_in_flight_;
  const auto& file = task_.slice->files[task_.slice->reads[block->read].file].file;
  const auto bytes = block->bytes;
  seams_.storage.read(
      geometry_->file_name(block->read), file.header_bytes + block->offset_bytes, bytes,
      [self = shared_from_this(), &work, block](Result<void> done) {
        --self->reads_in_flight_;
        if (!done) {
          Error error = done.error();
          if (error.code == Code::not_found) error.code = Code::corrupt;  // the manifest says that it is there
          self->fail(error.with_context(self->geometry_->describe_chunk(block->read, block->first_chunk)));
        }
        if (self->error_) return self->end_if_quiet();
        self->move(Phase::read, block->bytes.size());
        self->verify(work, block);
        self->pump();
      });
}

void LoadRun::verify(RoundWork& work, std::shared_ptr<ReadBlock> block) {
  // Tasks do not own the run: its end is the actor's business. It lives until their `done` has run.
  const auto check = [this, block] {
    const ReadFile& read = task_.slice->files[task_.slice->reads[block->read].file];
    const FilePlace place{task_.slice->id, read.file.section, read.file.rank, read.file.index};
    for (std::uint64_t i = 0; i < block->chunk_count; ++i) {
      const std::uint64_t chunk = block->first_chunk + i;
      const auto rest = block->bytes.subspan(i * chunk_bytes);
      const auto bytes = rest.first(std::min<std::uint64_t>(rest.size(), chunk_bytes));
      if (chunk_digest(place, chunk, bytes) == read.file.chunk_digests[chunk - read.first_chunk]) continue;
      block->verified = corrupt(geometry_->describe_chunk(block->read, chunk) + ": file '" +
                                geometry_->file_name(block->read) + "': chunk " + std::to_string(chunk) +
                                " does not have its digest, read by rank " + std::to_string(task_.rank.value));
      return;
    }
    block->verified = {};
  };
  ++tasks_in_flight_;
  seams_.compute.run(check, [self = shared_from_this(), &work, block] {
    --self->tasks_in_flight_;
    if (!block->verified) self->fail(block->verified.error());
    if (!self->error_ && --work.blocks_left == 0) self->pack(work);
    self->pump();
  });
}

// Runs a part of a round on the processor; the last one of its stage moves the round on.
void LoadRun::compute(RoundWork& work, std::function<Result<void>()> task) {
  ++tasks_in_flight_;
  ++work.tasks_left;
  auto result = std::make_shared<Result<void>>(internal("a copy ended early"));
  seams_.compute.run([result, task = std::move(task)] { *result = task(); },
                     [self = shared_from_this(), &work, result] {
                       --self->tasks_in_flight_;
                       --work.tasks_left;
                       if (!*result) {
                         self->fail(result->error().with_context("round " + std::to_string(work.round.value)));
                       }
                       if (!self->error_ && work.tasks_left == 0) {
                         if (work.stage == RoundWork::Stage::packing) {
                           work.stage = RoundWork::Stage::packed;
                         } else {
                           self->round_done(work);
                         }
                       }
                       self->pump();
                     });
}

Result<void> LoadRun::place_own(const ReceiveSlices& receive, std::size_t first, std::size_t last,
                                const RoundWork& work) const {
  for (std::size_t i = first; i < last; ++i) {
    const Slice& part = receive.slices[i];
    const auto source = geometry_->source_copies(part, work.runs.at(receive.runs[i]));
    VCKPT_TRY(const auto target, geometry_->target_copies(part));
    move_elements(geometry_->stored_type(part), source, geometry_->local_type(part), target);
  }
  return {};
}

// All reads of the round are verified: packs what is sent, places what is this rank's own, says where the rest goes.
void LoadRun::pack(RoundWork& work) {
  work.stage = RoundWork::Stage::packing;
  ++work.tasks_left;  // until all are given out
  add_pack_tasks(work);
  if (--work.tasks_left == 0) work.stage = RoundWork::Stage::packed;
}

void LoadRun::add_pack_tasks(RoundWork& work) {
  const auto& parts = work.packs.parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes.end - parts[begin].bytes.begin < task_bytes_target && i + 1 < parts.size()) continue;
    compute(work, [this, &work, begin, end = i + 1]() -> Result<void> {
      for (std::size_t k = begin; k < end; ++k) {
        const auto& part = work.packs.parts[k];
        const auto target = work.packed.subspan(part.bytes.begin, part.bytes.end - part.bytes.begin);
        gather(geometry_->source_copies(*part.slice, work.runs.at(part.run)), target);
      }
      return {};
    });
    begin = i + 1;
  }
  for (const auto* own : work.own) {
    std::size_t first = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < own->slices.size(); ++i) {
      bytes += geometry_->packed_bytes(own->slices[i]);
      if (bytes < task_bytes_target && i + 1 < own->slices.size()) continue;
      compute(work, [this, &work, own, first, last = i + 1] { return place_own(*own, first, last, work); });
      first = i + 1;
      bytes = 0;
    }
  }
  for (std::size_t i = 0; i < work.receives.size(); ++i) {
    if (!work.staged[i].empty()) {
      work.incoming[i].scatter.push_back({work.staged[i].data(), work.staged[i].size(), 1, 0});
      continue;
    }
    compute(work, [this, &work, i]() -> Result<void> {
      for (const auto& part : work.receives[i]->slices) {
        VCKPT_TRY(const auto target, geometry_->target_copies(part));
        auto& scatter = work.incoming[i].scatter;
        scatter.insert(scatter.end(), target.begin(), target.end());
      }
      return {};
    });
  }
}

void LoadRun::post_rounds() {
  while (next_posted_ < next_admitted_ && rounds_[next_posted_]->stage == RoundWork::Stage::packed) {
    RoundWork& work = *rounds_[next_posted_++];
    work.stage = RoundWork::Stage::posted;
    if (work.outgoing.empty() && work.incoming.empty()) {
      unpack(work);
      continue;
    }
    ++posts_in_flight_;
    seams_.transport.post(work.round, std::move(work.outgoing), std::move(work.incoming), task_.deadline,
                          [self = shared_from_this(), &work](Result<void> done) {
                            --self->posts_in_flight_;
                            if (!done) self->fail(done.error());
                            if (!self->error_) self->unpack(work);
                            self->pump();
                          });
  }
}

// What was received for a cast stands in staging and goes into place now.
void LoadRun::unpack(RoundWork& work) {
  work.stage = RoundWork::Stage::unpacking;
  std::uint64_t received = 0;
  for (std::size_t i = 0; i < work.receives.size(); ++i) {
    received += work.receives[i]->length_bytes;
    if (work.staged[i].empty()) continue;
    compute(work, [this, &work, i]() -> Result<void> {
      auto packed = work.staged[i];
      for (const auto& part : work.receives[i]->slices) {
        const Copy source{packed.data(), geometry_->packed_bytes(part), 1, 0};
        VCKPT_TRY(const auto target, geometry_->target_copies(part));
        move_elements(geometry_->stored_type(part), {&source, 1}, geometry_->local_type(part), target);
        packed = packed.subspan(source.run_bytes);
      }
      return {};
    });
  }
  move(work.tasks_left == 0 ? Phase::exchange : Phase::scatter, received);
  if (work.tasks_left == 0) round_done(work);
}

void LoadRun::round_done(RoundWork& work) {
  work.stage = RoundWork::Stage::done;
  work.lease = Lease();
  --rounds_in_flight_;
  ++rounds_done_;
}

void LoadRun::fail(Error error) {
  if (error_ || ended_) return;
  error_ = std::move(error);
  if (posts_in_flight_ != 0) {
    cancelling_ = true;
    seams_.transport.cancel([self = shared_from_this()](Result<void>) {
      self->cancelling_ = false;
      self->end_if_quiet();
    });
  }
  end_if_quiet();
}

// The caller's memory is free once no task and no round is at work; reads in flight fill staging alone.
void LoadRun::end_if_quiet() {
  if (tasks_in_flight_ != 0 || cancelling_ || posts_in_flight_ != 0) return;
  if (!std::exchange(ended_, true)) callbacks_.ended(*error_);
  if (reads_in_flight_ != 0) return;
  for (auto& work : rounds_) work->lease = Lease();
  callbacks_.freed();
}

}  // namespace vckpt
