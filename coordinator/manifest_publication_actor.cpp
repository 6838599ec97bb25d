#include "manifest_publication_actor.h"

#include <utility>

#include "schema/codec.h"
#include "schema/digest.h"
#include "schema/names.h"

namespace vckpt {
namespace {

struct Publication : std::enable_shared_from_this<Publication> {
  Publication(Storage& where, std::shared_ptr<const Manifest> what, Epoch epoch, Nonce writer,
              std::function<void(Result<std::vector<SegmentReference>>)> then)
      : storage(where), manifest(std::move(what)), decided_by(epoch), nonce(writer), done(std::move(then)) {}

  void encode_segments() {
    auto segments = split_manifest(*manifest, segment_bytes_target);
    for (const auto& segment : segments) {
      auto bytes = encode(segment);
      references.push_back({xxh3_128(bytes), bytes.size()});
      encoded.push_back(std::move(bytes));
    }
  }

  void next() {
    if (references.empty() || references.size() > segments_max) {
      return done(exhausted(manifest->id.name() + ": its manifest takes " + std::to_string(references.size()) +
                            " segments, at most " + std::to_string(segments_max) + " are allowed"));
    }
    if (published == encoded.size()) return done(std::move(references));
    const auto name = names::segment(manifest->id, decided_by, nonce, static_cast<std::uint32_t>(published));
    storage.publish_once(name, std::move(encoded[published]),
                         [self = shared_from_this(), name](Result<Published> made) {
                           if (!made) return self->done(made.error());
                           if (*made == Published::other)
                             return self->done(corrupt(name + ": other bytes stand there"));
                           ++self->published;
                           self->next();
                         });
  }

  Storage& storage;
  std::shared_ptr<const Manifest> manifest;
  Epoch decided_by;
  Nonce nonce;
  std::function<void(Result<std::vector<SegmentReference>>)> done;
  std::vector<Bytes> encoded;
  std::vector<SegmentReference> references;
  std::size_t published = 0;
};

}  // namespace

void publish_manifest(Compute& compute, Storage& storage, std::shared_ptr<const Manifest> manifest, Epoch decided_by,
                      Nonce nonce, std::function<void(Result<std::vector<SegmentReference>>)> done) {
  auto publication = std::make_shared<Publication>(storage, std::move(manifest), decided_by, nonce, std::move(done));
  compute.run([publication] { publication->encode_segments(); }, [publication] { publication->next(); });
}

}  // namespace vckpt
