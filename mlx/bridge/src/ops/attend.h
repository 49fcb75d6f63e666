// The arguments of attend, checked and converted, and its composition of MLX's operations.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/attention/attention.h"
#include "ops/attention.h"

namespace ingot {

// Positions of a segment in shared memory, from slot `slot` on.
struct SharedPart {
  size_t array;  // index of the keys in shared
  int64_t position, slot, count, capacity;
};

// One segment of attend: its query rows, the rows of keys and values to write, which end at the same position, and its
// storage.
struct Step {
  int row, rows;
  int64_t position, seen;
  int fresh, first;  // rows to write, and the index of the first in k and v
  int64_t capacity;
  size_t store;  // index of its first store
  int64_t base = 0;  // the first position in its storage; shared has those before it
  std::vector<SharedPart> shared = {};

  int64_t begin() const { return seen - fresh; }  // position of the first row to write
};

struct Attend {
  int heads, kv_heads, dim, value_dim;
  bool write;
  bool separate_values;        // values have storage of their own
  int key_width, value_width;  // elements per row of the stores
  int fresh;                   // rows to write, over all segments
  std::vector<Step> steps;
};

// Returns the first position that a segment's first row sees.
inline int64_t first_seen(const Step& t, const AttendOptions& o) {
  return cpu::first_seen(o.window, o.chunked, t.position);
}

// Reports whether writing before attention would overwrite keys in the ring that rows of this step still see.
inline bool must_write_last(const Step& t, const AttendOptions& o) {
  return o.ring && t.rows > t.capacity - o.window + 1;
}

// Returns the end of the positions that are read from the storage. If the new rows are written last, they are read from
// k and v.
inline int64_t stored_end(const Step& t, bool write_last) { return write_last ? t.begin() : t.seen; }

// A run of positions in consecutive slots. slots returns the runs of positions [first, end) in a ring or a linear
// storage.
struct Slots {
  int64_t position, slot, count;
};
std::vector<Slots> slots(int64_t first, int64_t end, int64_t capacity, bool ring);

// Returns the runs of positions [first, end) in a segment's own storage.
std::vector<Slots> own_slots(const Step& t, int64_t first, int64_t end, bool ring);

// Returns the runs of positions [first, end) in a part of shared memory: one or none.
std::vector<Slots> shared_slots(const SharedPart& p, int64_t first, int64_t end);

// attend composed of MLX's operations, segment by segment.
std::vector<mx::array> attend_composed(const Attend& a, const mx::array& q, const std::optional<mx::array>& k,
                                       const std::optional<mx::array>& v, std::vector<mx::array> stores,
                                       const std::optional<mx::array>& sinks, const AttendOptions& o,
                                       const std::vector<mx::array>& shared, mx::StreamOrDevice s);

}  // namespace ingot
