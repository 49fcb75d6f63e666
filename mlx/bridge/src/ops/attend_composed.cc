// attend composed of MLX's operations, for devices without our kernels and for types that they do not support.
#include <limits>

#include "ops/attend.h"

namespace ingot {

namespace {

// Appends the contents of runs of slots to parts.
void gather(const mx::array& store, const std::vector<Slots>& runs, std::vector<mx::array>& parts,
            mx::StreamOrDevice s) {
  for (auto r : runs) {
    mx::Shape stop = store.shape();
    stop[2] = int(r.slot + r.count);
    parts.push_back(mx::slice(store, {0, 0, int(r.slot), 0}, stop, s));
  }
}

// Returns rows [first, first+rows) of x [T, heads, size] as [1, heads, rows, size].
mx::array rows_of(const mx::array& x, int first, int rows, mx::StreamOrDevice s) {
  auto part = mx::slice(x, {first, 0, 0}, {first + rows, x.shape(1), x.shape(2)}, s);
  return mx::expand_dims(mx::transpose(part, {1, 0, 2}, s), 0, s);
}

mx::array with_written_rows(mx::array store, const mx::array& x, const Step& t, bool ring, mx::StreamOrDevice s) {
  int64_t skip = std::max<int64_t>(0, t.fresh - t.capacity);
  auto rows = mx::astype(rows_of(x, t.first, t.fresh, s), store.dtype(), s);
  for (auto r : own_slots(t, t.begin() + skip, t.seen, ring)) {
    int from = int(r.position - t.begin());
    auto part = mx::slice(rows, {0, 0, from, 0}, {1, rows.shape(1), from + int(r.count), rows.shape(3)}, s);
    mx::Shape stop = store.shape();
    stop[2] = int(r.slot + r.count);
    store = mx::slice_update(store, part, {0, 0, int(r.slot), 0}, stop, s);
  }
  return store;
}

// Returns a boolean mask [rows, n]: whether a row sees a position, for n positions from first on. Empty if all rows see
// all of them.
std::optional<mx::array> visibility_mask(const Step& t, const AttendOptions& o, int64_t first, int n,
                                         mx::StreamOrDevice s) {
  const bool ends = t.rows > 1 || t.position + 1 < t.seen;
  const bool begins = cpu::first_seen(o.window, o.chunked, t.position + t.rows - 1) > first;
  if (!ends && !begins) {
    return std::nullopt;
  }
  auto row = mx::expand_dims(mx::arange(0, t.rows, 1, mx::int32, s), 1, s);
  auto row_position = mx::add(row, mx::array(int(t.position - first)), s);
  auto key = mx::arange(0, n, 1, mx::int32, s);
  auto seen = mx::less_equal(key, row_position, s);
  if (o.chunked) {
    auto size = mx::array(o.window), at = mx::add(row_position, mx::array(int(first)), s);
    auto begin = mx::subtract(mx::multiply(mx::floor_divide(at, size, s), size, s), mx::array(int(first)), s);
    seen = mx::logical_and(seen, mx::greater_equal(key, begin, s), s);
  } else if (o.window > 0) {
    seen = mx::logical_and(seen, mx::greater(key, mx::subtract(row_position, mx::array(o.window), s), s), s);
  }
  return seen;
}

// Reports whether each row sees all given keys, from position first on, up to its own, and the last row sees the last
// one. MLX has a mode for that. A mask, which it takes as well, becomes an array of the size of all heads' scores on a
// GPU.
bool is_causal(const Step& t, const AttendOptions& o, int64_t first) {
  return t.position + t.rows == t.seen && cpu::first_seen(o.window, o.chunked, t.position + t.rows - 1) <= first;
}

// Attention with soft cap and sinks, composed of MLX's operations.
mx::array capped_attention(const mx::array& q, mx::array k, mx::array v, const std::optional<mx::array>& mask,
                           const std::optional<mx::array>& sinks, const AttendOptions& o, mx::StreamOrDevice s) {
  const int heads = q.shape(1), groups = k.shape(1), rows = q.shape(2);
  auto wide = [&](const mx::array& x) { return mx::astype(x, mx::promote_types(x.dtype(), mx::float32), s); };
  auto grouped = mx::reshape(wide(q), {1, groups, heads / groups, rows, q.shape(3)}, s);
  auto keys = mx::swapaxes(mx::expand_dims(wide(k), 2, s), -1, -2, s);
  auto scores = mx::multiply(mx::matmul(grouped, keys, s), mx::array(o.scale, grouped.dtype()), s);
  auto cap = mx::array(o.softcap, scores.dtype());
  scores = mx::multiply(mx::tanh(mx::divide(scores, cap, s), s), cap, s);
  if (mask) {
    scores = mx::where(*mask, scores, mx::array(-std::numeric_limits<float>::infinity(), scores.dtype()), s);
  }
  if (sinks) {
    auto extra = mx::reshape(mx::astype(*sinks, scores.dtype(), s), {1, groups, heads / groups, 1, 1}, s);
    extra = mx::broadcast_to(extra, {1, groups, heads / groups, rows, 1}, s);
    scores = mx::concatenate({extra, scores}, -1, s);
  }
  auto weights = mx::softmax(scores, -1, true, s);
  if (sinks) {
    mx::Shape start(5, 0);
    start[4] = 1;
    weights = mx::slice(weights, start, weights.shape(), s);
  }
  auto out = mx::matmul(weights, mx::expand_dims(wide(v), 2, s), s);
  return mx::astype(mx::reshape(out, {1, heads, rows, v.shape(3)}, s), q.dtype(), s);
}

}  // namespace

std::vector<mx::array> attend_composed(const Attend& a, const mx::array& q, const std::optional<mx::array>& k,
                                       const std::optional<mx::array>& v, std::vector<mx::array> stores,
                                       const std::optional<mx::array>& sinks, const AttendOptions& o,
                                       const std::vector<mx::array>& shared, mx::StreamOrDevice s) {
  auto kept = [&](const std::optional<mx::array>& x) { return x && o.bits > 0 ? pack_rows(*x, o.bits, s) : x; };
  const auto new_keys = kept(k), new_values = kept(v);
  std::vector<mx::array> outs;
  for (const Step& t : a.steps) {
    bool write_last = a.write && must_write_last(t, o);
    auto old = stores;
    if (a.write) {
      stores[t.store] = with_written_rows(stores[t.store], *new_keys, t, o.ring, s);
      if (a.separate_values) {
        stores[t.store + 1] = with_written_rows(stores[t.store + 1], *new_values, t, o.ring, s);
      }
    }
    int64_t first = write_last ? std::min(first_seen(t, o), t.begin()) : first_seen(t, o);
    const int64_t end = stored_end(t, write_last);
    // of keys, or of values: the store or shared array after that of keys
    auto history = [&](size_t side, const std::optional<mx::array>& fresh) {
      std::vector<mx::array> parts;
      for (const auto& p : t.shared) {
        gather(shared[p.array + side], shared_slots(p, first, end), parts, s);
      }
      const auto& own = (write_last ? old : stores)[t.store + side];
      gather(own, own_slots(t, first, end, o.ring), parts, s);
      if (write_last) {
        parts.push_back(mx::astype(rows_of(*fresh, t.first, t.fresh, s), own.dtype(), s));
      }
      return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 2, s);
    };
    auto as_query = [&](const mx::array& x) { return mx::astype(x, q.dtype(), s); };
    auto unpacked = [&](const mx::array& x) { return o.bits > 0 ? unpack_rows(x, o.bits, q.dtype(), s) : as_query(x); };
    auto keys = unpacked(history(0, new_keys));
    auto values = a.separate_values ? unpacked(history(1, new_values))
                          : mx::slice(keys, {0, 0, 0, 0}, {1, keys.shape(1), keys.shape(2), a.value_dim}, s);
    auto queries = rows_of(q, t.row, t.rows, s);
    const bool causal = o.softcap == 0 && t.rows > 1 && is_causal(t, o, first);
    auto mask = causal ? std::nullopt : visibility_mask(t, o, first, keys.shape(2), s);
    std::optional<mx::array> sink;
    if (sinks) {
      sink = as_query(*sinks);
    }
    auto y = o.softcap > 0 ? capped_attention(queries, keys, values, mask, sink, o, s)
                           : mx::fast::scaled_dot_product_attention(queries, keys, values, o.scale,
                                                                    causal ? "causal" : "", mask, sink, false, s);
    outs.push_back(mx::squeeze(mx::transpose(y, {0, 2, 1, 3}, s), 0, s));
  }
  std::vector<mx::array> results{outs.size() == 1 ? outs[0] : mx::concatenate(outs, 0, s)};
  if (a.write) {
    results.insert(results.end(), stores.begin(), stores.end());
  } else {
    // MLX's operations are ordered by their data, so that nothing has to wait for this array.
    results.push_back(mx::zeros({1}, mx::uint8, s));
  }
  return results;
}

}  // namespace ingot
