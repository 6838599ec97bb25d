#include "worker/save_run.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "schema/digest.h"
#include "schema/names.h"
#include "schema/safetensors.h"

namespace vckpt {
namespace {

// Blocks end on multiples of the store's grain; small budgets get small blocks, so that there are several to turn over.
std::uint64_t choose_block_bytes(std::uint64_t grain_bytes, std::uint64_t budget_bytes) {
  constexpr std::uint64_t page_bytes = 4096;
  const std::uint64_t wanted = std::clamp(budget_bytes / 4, page_bytes, block_bytes_max) / page_bytes * page_bytes;
  return std::max(wanted / grain_bytes * grain_bytes, grain_bytes);
}

// CRCs of a file's data chunks, fed in file order.
class ChunkDigester {
 public:
  void add(const FilePlace& place, std::uint64_t data_bytes, std::span<const std::byte> bytes,
           std::vector<std::uint32_t>& digests) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), chunk_bytes - offset_bytes_ % chunk_bytes));
      crc_ = crc32c(part, crc_);
      offset_bytes_ += part.size();
      bytes = bytes.subspan(part.size());
      if (offset_bytes_ % chunk_bytes != 0 && offset_bytes_ != data_bytes) continue;
      digests.push_back(crc_ ^ chunk_binding(place, digests.size()));
      crc_ = 0;
    }
  }

 private:
  std::uint64_t offset_bytes_ = 0;  // of the data
  std::uint32_t crc_ = 0;           // of the chunk so far
};

}  // namespace

struct SaveRun::Block {
  File* file = nullptr;
  std::uint64_t begin_bytes = 0;  // in the file
  std::uint64_t end_bytes = 0;
  Lease lease;
  bool is_copied = false;    // set by the copying task
  bool is_ready = false;     // the same, as the actor knows it
  bool is_digested = false;  // set by the digesting task
  std::span<std::byte> bytes() const { return lease.bytes().first(end_bytes - begin_bytes); }
};

struct SaveRun::File {
  FilePlace place;
  std::string name;
  std::string header;
  std::vector<PlacedPiece> pieces;
  std::vector<std::vector<Copy>> copies;  // of each piece
  FileRecord record;
  ChunkDigester digester;
  std::deque<std::shared_ptr<Block>> staged;    // in file order, to be digested
  std::deque<std::shared_ptr<Block>> digested;  // in file order, to be written
  FileId id = 0;
  std::size_t writes_in_flight = 0;
  std::uint64_t written_bytes = 0;
  bool digesting = false;
  bool creating = false;
  bool finishing = false;

  std::uint64_t length_bytes() const { return record.header_bytes + record.data_bytes; }

  // Fills a block of the file from header and pieces.
  void gather_block(std::uint64_t begin, std::span<std::byte> target) const {
    const std::uint64_t end = begin + target.size();
    if (begin < header.size()) {
      std::memcpy(target.data(), header.data() + begin, std::min<std::uint64_t>(end, header.size()) - begin);
    }
    auto piece = std::partition_point(pieces.begin(), pieces.end(), [&](const PlacedPiece& placed) {
      return header.size() + placed.offset_bytes + placed.length_bytes <= begin;
    });
    for (; piece != pieces.end(); ++piece) {
      const std::uint64_t piece_begin = header.size() + piece->offset_bytes;
      if (piece_begin >= end) return;
      const std::uint64_t from = std::max(begin, piece_begin);
      const std::uint64_t to = std::min(end, piece_begin + piece->length_bytes);
      gather_range(copies[static_cast<std::size_t>(piece - pieces.begin())], from - piece_begin,
                   target.subspan(from - begin, to - from));
    }
  }
};

SaveRun::SaveRun(Storage& storage, Compute& compute, Arena& arena, Task task, Callbacks callbacks)
    : storage_(storage), compute_(compute), arena_(arena), task_(std::move(task)), callbacks_(std::move(callbacks)) {}

SaveRun::~SaveRun() = default;

Error SaveRun::with_place(const Error& error, const File& file) const {
  return error.with_context("section '" + file.place.section + "': file '" + file.name + "'");
}

Result<void> SaveRun::prepare() {
  for (const auto& section : task_.slice->sections) {
    if (section.pieces.empty()) continue;
    if (const auto made = prepare_file(section); !made) {
      return made.error().with_context("section '" + section.section + "'");
    }
  }
  std::uint64_t charged_bytes = 0;
  for (const auto& file : files_) {
    total_bytes_ += file->length_bytes();
    charged_bytes += Arena::charged_bytes(file->length_bytes());
  }
  block_bytes_ = choose_block_bytes(storage_.limits().write_grain_bytes, arena_.budget_bytes());
  if (charged_bytes > arena_.budget_bytes()) {
    if (task_.over_budget == OverBudget::fail) {
      return exhausted("this rank owns " + std::to_string(total_bytes_) + " bytes, its staging budget is " +
                       std::to_string(arena_.budget_bytes()));
    }
    draining_ = true;
  }
  return {};
}

Result<void> SaveRun::prepare_file(const SectionSlice& section) {
  const SectionTable* table = task_.table->find(section.section);
  if (table == nullptr) return internal("the plan asks for a section that this rank does not hold");
  auto file = std::make_unique<File>();
  for (const auto& piece : section.pieces) {
    if (piece.tensor >= section.tensors.size()) return internal("a piece names tensor " + std::to_string(piece.tensor));
    VCKPT_TRY_VOID(check_box(piece.box, section.tensors[piece.tensor].shape));
  }
  file->pieces = place_pieces(section.tensors, section.pieces);
  for (const auto& piece : file->pieces) {
    const TensorSpec& spec = section.tensors[piece.tensor];
    const LocalTensor* tensor = table->find(spec.fqn);
    if (tensor == nullptr || tensor->spec != spec) {
      return internal("the plan asks for '" + to_string(spec) + "', which this rank does not hold");
    }
    VCKPT_TRY(auto copies, part_copies(*tensor, to_units(spec, piece.box)));
    file->copies.push_back(std::move(copies));
  }
  VCKPT_TRY(file->header, safetensors::write_data_file_header(section.tensors, file->pieces));
  file->place = FilePlace{task_.slice->id, section.section, task_.rank, 0};
  file->name = names::data_file(file->place);
  file->record.section = section.section;
  file->record.rank = task_.rank;
  file->record.header_bytes = file->header.size();
  file->record.data_bytes = data_bytes(file->pieces);
  file->record.header_digest = chunk_digest(file->place, header_chunk, std::as_bytes(std::span(file->header)));
  files_.push_back(std::move(file));
  return {};
}

void SaveRun::start() {
  arena_.reset_peak();
  if (auto prepared = prepare(); !prepared) return fail(prepared.error());
  pump();
}

void SaveRun::resume() {
  if (!error_ && !ended_ && !staged_) pump();
}

void SaveRun::stop() { fail(aborted("the save was stopped")); }

void SaveRun::pump() {
  if (error_ || ended_) return;
  copy_blocks();
  if (error_) return;
  if (!staged_ && copied_bytes_ == total_bytes_) {
    staged_ = draining_ = true;
    callbacks_.moved(Phase::write, written_bytes_);
    callbacks_.staged();
  }
  if (draining_) {
    for (auto& file : files_) drain(*file);
  }
  if (!error_ && !ended_ && files_durable_ == files_.size() && staged_) {
    ended_ = true;
    std::vector<FileRecord> records;
    for (auto& file : files_) records.push_back(std::move(file->record));
    callbacks_.ended(std::move(records));
  }
}

void SaveRun::copy_blocks() {
  while (next_file_ < files_.size() && copies_in_flight_ < copies_in_flight_max) {
    File& file = *files_[next_file_];
    auto block = std::make_shared<Block>();
    block->file = &file;
    block->begin_bytes = next_offset_bytes_;
    block->end_bytes = std::min(next_offset_bytes_ + block_bytes_, file.length_bytes());
    auto lease = arena_.lease(block->end_bytes - block->begin_bytes);
    if (!lease) {
      // Somebody gives staging back sooner or later: this run, or another that drains. With none leased nobody will.
      draining_ = true;
      if (arena_.leased_bytes() == 0) fail(with_place(lease.error(), file));
      return;
    }
    block->lease = std::move(*lease);
    file.staged.push_back(block);
    next_offset_bytes_ = block->end_bytes;
    if (next_offset_bytes_ == file.length_bytes()) {
      ++next_file_;
      next_offset_bytes_ = 0;
    }
    copy(std::move(block));
  }
}

void SaveRun::copy(std::shared_ptr<Block> block) {
  ++copies_in_flight_;
  compute_.run(
      [block = block.get()] {  // tasks own no staging: it goes back on the actor
        block->file->gather_block(block->begin_bytes, block->bytes());
        block->is_copied = true;
      },
      [self = shared_from_this(), block] { self->copied(*block); });
}

void SaveRun::copied(Block& block) {
  --copies_in_flight_;
  if (!block.is_copied) fail(with_place(internal("copying ended early"), *block.file));
  if (error_) return end_if_quiet();
  block.is_ready = true;
  copied_bytes_ += block.bytes().size();
  if (!staged_) callbacks_.moved(Phase::copy, copied_bytes_);
  pump();
}

void SaveRun::drain(File& file) {
  if (error_) return;
  if (!file.digesting && !file.staged.empty() && file.staged.front()->is_ready) {
    auto block = std::move(file.staged.front());
    file.staged.pop_front();
    digest(file, std::move(block));
  }
  if (file.digested.empty()) return;
  if (file.id == 0) return create(file);
  while (!file.digested.empty() && writes_in_flight_ < writes_in_flight_max) {
    auto block = std::move(file.digested.front());
    file.digested.pop_front();
    write(file, std::move(block));
  }
}

void SaveRun::digest(File& file, std::shared_ptr<Block> block) {
  file.digesting = true;
  compute_.run(
      [block = block.get(), &file] {
        const std::uint64_t header = file.record.header_bytes;
        const std::uint64_t skip = block->begin_bytes < header ? header - block->begin_bytes : 0;
        const auto data = block->bytes().subspan(std::min<std::uint64_t>(skip, block->bytes().size()));
        file.digester.add(file.place, file.record.data_bytes, data, file.record.chunk_digests);
        block->is_digested = true;
      },
      [self = shared_from_this(), block, &file] {
        file.digesting = false;
        if (!block->is_digested) self->fail(self->with_place(internal("digesting ended early"), file));
        if (self->error_) {
          block->lease = Lease();
          return self->callbacks_.freed();
        }
        file.digested.push_back(block);
        self->pump();
      });
}

void SaveRun::create(File& file) {
  if (std::exchange(file.creating, true)) return;
  storage_.create_file(file.name, file.length_bytes(), [self = shared_from_this(), &file](Result<FileId> created) {
    file.creating = false;
    if (!created) return self->fail(self->with_place(created.error(), file));
    file.id = *created;
    if (self->error_) return self->abandon_files();
    self->pump();
  });
}

void SaveRun::write(File& file, std::shared_ptr<Block> block) {
  ++writes_in_flight_;
  ++file.writes_in_flight;
  const auto bytes = block->bytes();
  storage_.write(file.id, block->begin_bytes, bytes, [self = shared_from_this(), block, &file](Result<void> done) {
    --self->writes_in_flight_;
    --file.writes_in_flight;
    const std::uint64_t length_bytes = block->bytes().size();
    block->lease = Lease();
    if (!done) self->fail(self->with_place(done.error(), file));
    if (self->error_) {
      self->abandon_files();
    } else {
      file.written_bytes += length_bytes;
      self->written_bytes_ += length_bytes;
      if (self->staged_) self->callbacks_.moved(Phase::write, self->written_bytes_);
      if (file.written_bytes == file.length_bytes()) self->finish(file);
      self->pump();
    }
    self->callbacks_.freed();
  });
}

void SaveRun::finish(File& file) {
  file.finishing = true;
  if (written_bytes_ == total_bytes_) callbacks_.moved(Phase::sync, durable_bytes_);
  storage_.finish(file.id, [self = shared_from_this(), &file](Result<void> done) {
    if (!done) return self->fail(self->with_place(done.error(), file));
    ++self->files_durable_;
    self->durable_bytes_ += file.length_bytes();
    if (self->written_bytes_ == self->total_bytes_) self->callbacks_.moved(Phase::sync, self->durable_bytes_);
    self->pump();
  });
}

void SaveRun::fail(Error error) {
  if (error_ || ended_) return;
  error_ = std::move(error);
  for (auto& file : files_) file->digested.clear();
  abandon_files();
  end_if_quiet();
}

// Files that are being written are abandoned by the last of their writes.
void SaveRun::abandon_files() {
  for (auto& file : files_) {
    if (file->id == 0 || file->writes_in_flight != 0 || file->finishing) continue;
    storage_.abandon(std::exchange(file->id, 0), [self = shared_from_this()](Result<void>) {});
  }
}

// The caller's memory is free once nothing is being copied; writes in flight read staging alone.
void SaveRun::end_if_quiet() {
  if (ended_ || copies_in_flight_ != 0) return;
  ended_ = true;
  for (auto& file : files_) file->staged.clear();
  callbacks_.ended(*error_);
  callbacks_.freed();
}

}  // namespace vckpt
