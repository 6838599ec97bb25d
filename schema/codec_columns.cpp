#include "schema/codec_columns.h"

namespace vckpt::wire {

unsigned list_size(std::size_t count) {
  VCKPT_ASSERT(count < (std::size_t{1} << 29));
  return static_cast<unsigned>(count);
}

void write(Names::Builder builder, const std::vector<std::string_view>& names) {
  std::string joined;
  Numbers32 ends;
  ends.reserve(names.size());
  for (const auto name : names) {
    joined += name;
    ends.push_back(list_size(joined.size()));
  }
  builder.setText(blob(joined));
  fill(builder.initEnds(list_size(ends.size())), ends);
}

std::vector<std::string> read(Names::Reader reader) {
  const auto joined = reader.getText();
  const auto ends = reader.getEnds();
  std::vector<std::string> names;
  names.reserve(ends.size());
  std::size_t begin = 0;
  for (const std::uint32_t end : ends) {
    require(begin <= end && end <= joined.size(), "names: an end out of order or of bounds");
    names.emplace_back(reinterpret_cast<const char*>(joined.begin()) + begin, end - begin);
    begin = end;
  }
  require(begin == joined.size(), "names: text that belongs to none");
  return names;
}

void write(Boxes::Builder builder, const std::vector<const Box*>& boxes) {
  std::string counts;
  Numbers64 numbers;
  for (const auto* box : boxes) {
    VCKPT_ASSERT(box->offsets.size() == box->sizes.size() && box->sizes.size() <= dims_max);
    counts.push_back(static_cast<char>(box->sizes.size()));
    numbers.insert(numbers.end(), box->offsets.begin(), box->offsets.end());
    numbers.insert(numbers.end(), box->sizes.begin(), box->sizes.end());
  }
  builder.setDimCounts(blob(counts));
  fill(builder.initNumbers(list_size(numbers.size())), numbers);
}

std::vector<Box> read(Boxes::Reader reader) {
  const auto counts = reader.getDimCounts();
  const auto numbers = numbers_of<std::uint64_t>(reader.getNumbers());
  std::span<const std::uint64_t> rest = numbers;
  std::vector<Box> boxes;
  boxes.reserve(counts.size());
  for (const auto count : counts) {
    require(count <= dims_max, "box: too many dimensions");
    const auto offsets = take(rest, count, "numbers of boxes");
    const auto sizes = take(rest, count, "numbers of boxes");
    boxes.push_back(Box{{offsets.begin(), offsets.end()}, {sizes.begin(), sizes.end()}});
  }
  require(rest.empty(), "numbers of boxes: more than there are boxes");
  return boxes;
}

}  // namespace vckpt::wire
