// What workers are told to do: their slices of a save or load plan.
#include "schema/codec_control.h"

namespace vckpt::wire {
namespace {

void check_target(const vckpt::Slice& slice, const std::vector<StoredTensor>& tensors) {
  require(slice.tensor < tensors.size(), "slices: tensor index out of bounds");
  const auto& spec = tensors[slice.tensor].spec;
  within("slice of '" + spec.fqn + "'", [&] {
    require(check_box(slice.piece, spec.shape));
    require(check_box(slice.target, spec.shape));
    require(slice.begin_bytes <= slice.end_bytes, "its bytes end before they begin");
  });
}

void write(Slices::Builder builder, const std::vector<vckpt::Slice>& slices, const Numbers32& runs) {
  Numbers32 tensors;
  Numbers64 extents;
  std::vector<const Box*> pieces, targets;
  for (const auto& slice : slices) {
    tensors.push_back(slice.tensor);
    pieces.push_back(&slice.piece);
    extents.insert(extents.end(), {slice.piece_offset_bytes, slice.begin_bytes, slice.end_bytes});
    targets.push_back(&slice.target);
  }
  fill(builder.initTensors(list_size(tensors.size())), tensors);
  write(builder.initPieces(), pieces);
  fill(builder.initExtents(list_size(extents.size())), extents);
  write(builder.initTargets(), targets);
  fill(builder.initRuns(list_size(runs.size())), runs);
}

std::vector<vckpt::Slice> read(Slices::Reader reader, const std::vector<StoredTensor>& stored) {
  const auto tensors = reader.getTensors();
  auto pieces = within("pieces", [&] { return wire::read(reader.getPieces()); });
  const auto extents = reader.getExtents();
  auto targets = within("targets", [&] { return wire::read(reader.getTargets()); });
  require(pieces.size() == tensors.size() && targets.size() == tensors.size() &&
              extents.size() == std::uint64_t{3} * tensors.size(),
          "slices: columns of unequal length");
  std::vector<vckpt::Slice> slices;
  slices.reserve(tensors.size());
  for (unsigned i = 0; i < tensors.size(); ++i) {
    slices.push_back(vckpt::Slice{tensors[i], std::move(pieces[i]), extents[3 * i], extents[3 * i + 1],
                                  extents[3 * i + 2], std::move(targets[i])});
    check_target(slices.back(), stored);
  }
  return slices;
}

void check_runs(const Numbers32& runs, std::size_t slices, std::size_t reads) {
  require(runs.size() == slices, "runs: not one per slice");
  for (const auto run : runs) require(run < reads, "runs: index out of bounds");
}

void write(Gaps::Builder builder, const std::vector<Gap>& gaps) {
  Numbers32 tensors;
  std::vector<const Box*> targets, stored;
  std::string outsides;
  for (const auto& gap : gaps) {
    tensors.push_back(gap.tensor);
    targets.push_back(&gap.target);
    stored.push_back(&gap.stored);
    outsides.push_back(static_cast<char>(gap.outside));
  }
  fill(builder.initTensors(list_size(tensors.size())), tensors);
  write(builder.initTargets(), targets);
  write(builder.initStored(), stored);
  builder.setOutsides(blob(outsides));
}

std::vector<Gap> read(Gaps::Reader reader, std::size_t tensor_count) {
  const auto tensors = reader.getTensors();
  auto targets = wire::read(reader.getTargets());
  auto stored = wire::read(reader.getStored());
  const auto outsides = reader.getOutsides();
  require(targets.size() == tensors.size() && stored.size() == tensors.size() && outsides.size() == tensors.size(),
          "columns of unequal length");
  std::vector<Gap> gaps;
  for (unsigned i = 0; i < tensors.size(); ++i) {
    require(tensors[i] < tensor_count, "tensor index out of bounds");
    require(targets[i].sizes.size() == stored[i].sizes.size(), "boxes of unequal dimensions");
    gaps.push_back(
        Gap{tensors[i], std::move(targets[i]), std::move(stored[i]), enum_of(outsides[i], Outside::keep, "outside")});
  }
  return gaps;
}

void write(StoredTensors::Builder builder, const std::vector<StoredTensor>& tensors) {
  std::vector<const TensorSpec*> specs;
  for (const auto& tensor : tensors) specs.push_back(&tensor.spec);
  write_names(builder.initSections(), tensors, [](const auto& tensor) -> std::string_view { return tensor.section; });
  write(builder.initSpecs(), specs);
  write_names(builder.initWanted(), tensors, [](const auto& tensor) -> std::string_view { return tensor.wanted; });
}

std::vector<StoredTensor> read(StoredTensors::Reader reader) {
  auto sections = within("sections", [&] { return wire::read(reader.getSections()); });
  auto specs = within("specs", [&] { return wire::read(reader.getSpecs()); });
  auto wanted = within("wanted", [&] { return wire::read(reader.getWanted()); });
  require(sections.size() == specs.size() && wanted.size() == specs.size(), "columns of unequal length");
  std::vector<StoredTensor> tensors;
  tensors.reserve(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    require(check_section_name(sections[i]));
    require(check_fqn(wanted[i]));
    tensors.push_back(StoredTensor{std::move(sections[i]), std::move(specs[i]), std::move(wanted[i])});
  }
  return tensors;
}

template <typename Rounds>
void require_ascending(const Rounds& parts, std::uint32_t rounds, std::string_view field) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].round.value >= rounds) malformed(std::string(field) + ": round out of bounds");
    if (i > 0 && parts[i].round < parts[i - 1].round) malformed(std::string(field) + ": rounds do not ascend");
  }
}

}  // namespace

static void write(SectionSlice::Builder builder, const vckpt::SectionSlice& slice) {
  builder.setSection(text(slice.section));
  write(builder.initTensors(), pointers(slice.tensors));
  write(builder.initPieces(), pointers(slice.pieces));
}

static vckpt::SectionSlice read(SectionSlice::Reader reader) {
  vckpt::SectionSlice slice;
  slice.section = section_of(reader.getSection());
  slice.tensors = within("tensors", [&] { return read(reader.getTensors()); });
  require_sorted(slice.tensors);
  slice.pieces = within("pieces", [&] { return read(reader.getPieces(), slice.tensors); });
  return slice;
}

static void write(ReadFile::Builder builder, const vckpt::ReadFile& file) {
  write(builder.initFile(), file.file);
  builder.setFirstChunk(file.first_chunk);
}

static vckpt::ReadFile read(ReadFile::Reader reader) {
  return {read_part(reader.getFile(), reader.getFirstChunk()), reader.getFirstChunk()};
}

static void write(ReadRun::Builder builder, const vckpt::ReadRun& run) {
  builder.setRound(run.round.value);
  builder.setFile(run.file);
  builder.setFirstChunk(run.first_chunk);
  builder.setChunkCount(run.chunk_count);
}

static vckpt::ReadRun read(ReadRun::Reader reader) {
  return {Round(reader.getRound()), reader.getFile(), reader.getFirstChunk(), reader.getChunkCount()};
}

static void write(Transfer::Builder builder, const SendSlices& send) {
  builder.setRound(send.round.value);
  builder.setPeer(send.target.value);
  write(builder.initSlices(), send.slices, send.runs);
}

static void write(Transfer::Builder builder, const ReceiveSlices& receive) {
  builder.setRound(receive.round.value);
  builder.setPeer(receive.source.value);
  builder.setLengthBytes(receive.length_bytes);
  write(builder.initSlices(), receive.slices, receive.runs);
}

void write(SaveSlice::Builder builder, const vckpt::SaveSlice& slice) {
  builder.setOrdinal(slice.ordinal.value);
  write(builder.initId(), slice.id);
  builder.setPlan(blob(slice.plan));
  write_each(builder.initSections(list_size(slice.sections.size())), slice.sections);
  write_names(builder.initItemSections(), slice.items, [](const auto& key) -> std::string_view { return key.section; });
  write_names(builder.initItemNames(), slice.items, [](const auto& key) -> std::string_view { return key.name; });
}

vckpt::SaveSlice read(SaveSlice::Reader reader) {
  vckpt::SaveSlice slice;
  slice.ordinal = Ordinal(reader.getOrdinal());
  slice.id = read(reader.getId());
  slice.plan = digest_of(reader.getPlan());
  slice.sections = read_each<vckpt::SectionSlice>(reader.getSections(), "sections");
  auto sections = within("items", [&] { return read(reader.getItemSections()); });
  auto names = within("items", [&] { return read(reader.getItemNames()); });
  require(sections.size() == names.size(), "items: columns of unequal length");
  for (std::size_t i = 0; i < names.size(); ++i) {
    require(check_section_name(sections[i]));
    require(check_fqn(names[i]));
    slice.items.push_back(ItemKey{std::move(sections[i]), std::move(names[i])});
  }
  return slice;
}

void write(LoadSlice::Builder builder, const vckpt::LoadSlice& slice) {
  builder.setOrdinal(slice.ordinal.value);
  write(builder.initId(), slice.id);
  builder.setGeneration(slice.generation);
  builder.setRounds(slice.rounds);
  write(builder.initTensors(), slice.tensors);
  write_each(builder.initFiles(list_size(slice.files.size())), slice.files);
  write_each(builder.initReads(list_size(slice.reads.size())), slice.reads);
  write_each(builder.initSends(list_size(slice.sends.size())), slice.sends);
  write_each(builder.initReceives(list_size(slice.receives.size())), slice.receives);
  write(builder.initGaps(), slice.gaps);
  write_each(builder.initItems(list_size(slice.items.size())), slice.items);
  write(builder.initMissing(), slice.missing);
  write(builder.initUnexpected(), slice.unexpected);
  builder.setMeta(text(slice.meta));
}

// Sends, receives and the reads that they draw from.
static void read_transfers(LoadSlice::Reader reader, vckpt::LoadSlice& slice) {
  for (const auto send : reader.getSends()) {
    within("sends", [&] {
      const auto part = send.getSlices();
      require(send.getLengthBytes() == 0, "a length");
      slice.sends.push_back(SendSlices{Round(send.getRound()), Rank(send.getPeer()), read(part, slice.tensors),
                                       numbers_of<std::uint32_t>(part.getRuns())});
      check_runs(slice.sends.back().runs, slice.sends.back().slices.size(), slice.reads.size());
    });
  }
  for (const auto receive : reader.getReceives()) {
    within("receives", [&] {
      const auto part = receive.getSlices();
      slice.receives.push_back(ReceiveSlices{Round(receive.getRound()), Rank(receive.getPeer()),
                                             receive.getLengthBytes(), read(part, slice.tensors),
                                             numbers_of<std::uint32_t>(part.getRuns())});
      const auto& last = slice.receives.back();
      if (!last.runs.empty()) check_runs(last.runs, last.slices.size(), slice.reads.size());
    });
  }
}

vckpt::LoadSlice read(LoadSlice::Reader reader) {
  vckpt::LoadSlice slice;
  slice.ordinal = Ordinal(reader.getOrdinal());
  slice.id = read(reader.getId());
  slice.generation = reader.getGeneration();
  slice.rounds = reader.getRounds();
  slice.tensors = within("tensors", [&] { return read(reader.getTensors()); });
  slice.files = read_each<vckpt::ReadFile>(reader.getFiles(), "files");
  slice.reads = read_each<vckpt::ReadRun>(reader.getReads(), "reads");
  for (const auto& run : slice.reads) {
    require(run.file < slice.files.size(), "reads: file index out of bounds");
    const auto& file = slice.files[run.file];
    require(run.chunk_count > 0 && run.first_chunk >= file.first_chunk &&
                run.first_chunk - file.first_chunk <= file.file.chunk_digests.size() &&
                run.chunk_count <= file.file.chunk_digests.size() - (run.first_chunk - file.first_chunk),
            "reads: chunks without digests");
  }
  read_transfers(reader, slice);
  require_ascending(slice.reads, slice.rounds, "reads");
  require_ascending(slice.sends, slice.rounds, "sends");
  require_ascending(slice.receives, slice.rounds, "receives");
  slice.gaps = within("gaps", [&] { return read(reader.getGaps(), slice.tensors.size()); });
  slice.items = read_each<vckpt::Item>(reader.getItems(), "items");
  slice.missing = within("missing", [&] { return read(reader.getMissing()); });
  slice.unexpected = within("unexpected", [&] { return read(reader.getUnexpected()); });
  slice.meta = text(reader.getMeta());
  return slice;
}

}  // namespace vckpt::wire
