// Sparse attention: an indexer chooses keys, and queries attend to those. By our kernels on the CPU, otherwise composed
// of MLX's operations.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/attention/attention.h"
#include "cpu/isa.h"
#include "cpu/node.h"
#include "ops/attention.h"
#include "ops/matrix.h"
#include "ops/rows.h"
#include "ops/sparse/sparse.h"

namespace ingot {

namespace {

constexpr int kUnchosen = std::numeric_limits<int32_t>::max();
// Of the rows that are composed together: the floats of the largest array, and, with a window, their number, because
// what a row's window lacks of its block's is computed in vain.
constexpr int64_t kBlockFloats = 1 << 24, kBlockRows = 64;

// The rows of one sequence, and its storage [1, 1, capacity, width].
struct SparseRows {
  int row, rows;
  int64_t position, capacity;
};

// Checks what both operations share. segments is a list of {rows, position}. A store has a key for each rate positions.
std::vector<SparseRows> parse_sparse(const char* what, const mx::array& q, const std::vector<mx::array>& stores,
                                     const std::vector<int>& segments, const std::optional<mx::array>& positions,
                                     int rate, int bits) {
  auto fail = [&](const std::string& why) { refuse(std::string(what) + ": " + why); };
  if (q.ndim() != 3 || q.size() == 0) {
    fail("queries are " + to_string(q) + ", want [rows, heads, channels]");
  }
  if (bits != 0 && bits != 8 && bits != 4) {
    fail("storage of " + std::to_string(bits) + " bits; want 8 or 4, or 0 if not packed");
  }
  if (rate < 1) {
    fail("a key for each " + std::to_string(rate) + " positions");
  }
  if (stores.empty() || segments.size() != 2 * stores.size()) {
    fail(std::to_string(stores.size()) + " stores for " + std::to_string(segments.size()) + " numbers of segments");
  }
  std::vector<SparseRows> list;
  int64_t row = 0;
  for (size_t i = 0; i < stores.size(); i++) {
    const auto& x = stores[i];
    bool typed = bits > 0 ? x.dtype() == mx::uint8 : mx::issubdtype(x.dtype(), mx::floating);
    if (x.ndim() != 4 || x.shape(0) != 1 || x.shape(1) != 1 || x.size() == 0 || x.dtype() != stores[0].dtype() ||
        !typed || (bits > 0 ? cpu::packed_dim(x.shape(3), bits) : x.shape(3)) != q.shape(2)) {
      fail("queries " + to_string(q) + " do not fit storage " + to_string(x));
    }
    SparseRows r{int(row), segments[2 * i], segments[2 * i + 1], x.shape(2)};
    const bool small = r.position + r.rows <= std::numeric_limits<int>::max();
    if (r.rows < 1 || r.position < 0 || !small || (r.position + r.rows) / rate > r.capacity) {
      fail(std::to_string(r.rows) + " rows from position " + std::to_string(r.position) +
           " do not fit storage of " + std::to_string(r.capacity));
    }
    row += r.rows;
    list.push_back(r);
  }
  if (row != q.shape(0)) {
    fail("the segments have " + std::to_string(row) + " rows of " + std::to_string(q.shape(0)));
  }
  if (positions && (positions->dtype() != mx::int32 || positions->shape() != mx::Shape{q.shape(0)})) {
    fail("positions " + to_string(*positions) + " are not one int32 per row");
  }
  return list;
}

// Returns the segment at its current position.
SparseRows moved(SparseRows r, const int32_t* positions, int rate) {
  if (positions) {
    r.position = positions[r.row];
  }
  if (r.position < 0 || (r.position + r.rows) / rate > r.capacity) {
    throw std::out_of_range("sparse attention: " + std::to_string(r.rows) + " rows from position " +
                            std::to_string(r.position) + " do not fit storage of " + std::to_string(r.capacity));
  }
  return r;
}

// A window of keys, position p in slot p mod the capacity of its storage.
bool holds_window(const mx::array& near, const SparseRows& r, int window) {
  const int64_t first = std::max<int64_t>(0, r.position + 1 - window);
  return r.position + r.rows - first <= near.shape(2);
}

bool indexed_by_kernels(const mx::array& q, const mx::array& store, int bits, mx::StreamOrDevice s) {
  return cpu::on_cpu(s) && bits == 0 && ingot::floating(q.dtype()) && ingot::floating(store.dtype()) &&
         q.shape(2) <= cpu::kMaxHeadDim;
}

// Returns the first n positions of a store in float32, [n, channels].
mx::array stored_rows(const mx::array& store, int64_t n, int bits, mx::StreamOrDevice s) {
  auto rows = mx::slice(store, {0, 0, 0, 0}, {1, 1, int(n), store.shape(3)}, s);
  rows = bits > 0 ? unpack_rows(rows, bits, mx::float32, s) : mx::astype(rows, mx::float32, s);
  return mx::squeeze(rows, std::vector<int>{0, 1}, s);
}

// Returns rows [begin, end) of x.
mx::array row_range(const mx::array& x, int begin, int end, mx::StreamOrDevice s) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start[0] = begin;
  stop[0] = end;
  return mx::slice(x, start, stop, s);
}

// Calls f with ranges of rows, each of which needs a number of floats, and joins the results.
template <class F>
mx::array by_block(const std::vector<SparseRows>& list, F&& f, mx::StreamOrDevice s) {
  std::vector<mx::array> parts;
  for (size_t i = 0; i < list.size(); i++) {
    const int size = int(std::clamp<int64_t>(f.most_rows(list[i]), 1, list[i].rows));
    for (int begin = 0; begin < list[i].rows; begin += size) {
      parts.push_back(f(i, list[i], begin, std::min(begin + size, list[i].rows)));
    }
  }
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0, s);
}

// Returns the number of keys that rows see, int32 [rows, 1].
mx::array seen_keys(const SparseRows& r, int begin, int end, int rate) {
  std::vector<int32_t> n(size_t(end - begin));
  for (size_t i = 0; i < n.size(); i++) {
    n[i] = int32_t((r.position + begin + int64_t(i) + 1) / rate);
  }
  return mx::array(n.begin(), {end - begin, 1}, mx::int32);
}

struct ComposedChoice {
  const mx::array &q, &weights;
  const std::vector<mx::array>& stores;
  int budget, rate, bits;
  mx::StreamOrDevice s;

  int64_t most_rows(const SparseRows& r) const {
    return kBlockFloats / (q.shape(1) * ((r.position + r.rows) / rate + 1));
  }

  mx::array operator()(size_t store, const SparseRows& r, int begin, int end) const {
    const int n = (int(r.position) + end) / rate;
    if (n == 0) {
      return mx::full({end - begin, budget}, mx::array(int32_t(-1)), mx::int32, s);
    }
    auto keys = stored_rows(stores[store], n, bits, s);
    auto scores = mx::matmul(row_range(q, r.row + begin, r.row + end, s), mx::transpose(keys, s), s);
    auto weight = mx::expand_dims(row_range(weights, r.row + begin, r.row + end, s), -1, s);
    auto sums = mx::sum(mx::multiply(mx::maximum(scores, mx::array(0.0f), s), weight, s), 1, false, s);
    auto at = mx::arange(0, n, 1, mx::int32, s);
    auto lowest = mx::array(-std::numeric_limits<float>::infinity());
    auto seen = mx::less(at, seen_keys(r, begin, end, rate), s);
    auto best = largest(mx::where(seen, sums, lowest, s), std::min(budget, n), s);
    auto none = mx::array(int32_t(kUnchosen));
    auto chosen = mx::where(mx::equal(best[0], lowest, s), none, mx::astype(best[1], mx::int32, s), s);
    chosen = mx::sort(chosen, -1, s);
    chosen = mx::where(mx::equal(chosen, none, s), mx::array(int32_t(-1)), chosen, s);
    return n >= budget ? chosen : mx::pad(chosen, {{0, 0}, {0, budget - n}}, mx::array(int32_t(-1)), "constant", s);
  }
};

struct ComposedAttention {
  const mx::array& q;
  const std::optional<mx::array>& chosen;
  const std::vector<mx::array>&stores, &nears;
  const std::optional<mx::array>& sinks;
  const ChosenOptions& o;
  mx::StreamOrDevice s;

  int64_t most_rows(const SparseRows& r) const {
    const int64_t far = chosen ? int64_t(chosen->shape(1)) * q.shape(2) : q.shape(1) * ((r.position + r.rows) / o.rate);
    const int64_t rows = kBlockFloats / std::max<int64_t>(1, far + (nears.empty() ? 0 : q.shape(1) * o.window));
    return nears.empty() ? rows : std::min(rows, kBlockRows);
  }

  mx::array operator()(size_t store, const SparseRows& r, int begin, int end) const {
    const auto queries = mx::multiply(mx::astype(row_range(q, r.row + begin, r.row + end, s), mx::float32, s),
                                      mx::array(o.scale), s);
    const auto lowest = mx::array(-std::numeric_limits<float>::infinity());
    std::vector<mx::array> scores, keys;
    auto add = [&](const mx::array& of, const mx::array& seen) {
      auto each = mx::matmul(queries, mx::swapaxes(of, -1, -2, s), s);
      scores.push_back(mx::where(mx::expand_dims(seen, 1, s), each, lowest, s));
      keys.push_back(of);
    };
    if (!nears.empty()) {
      add_window(nears[store], r, begin, end, add);
    }
    if (const int n = int((r.position + end) / o.rate); chosen) {
      auto at = row_range(*chosen, r.row + begin, r.row + end, s);
      auto last = mx::array(int(r.capacity) - 1);
      add(mx::take(stored_rows(stores[store], r.capacity, o.bits, s), mx::clip(at, mx::array(0), last, s), 0, s),
          mx::greater_equal(at, mx::array(0), s));
    } else if (n > 0) {
      add(stored_rows(stores[store], n, o.bits, s),
          mx::less(mx::arange(0, n, 1, mx::int32, s), seen_keys(r, begin, end, o.rate), s));
    }
    if (sinks) {
      auto column = mx::reshape(mx::astype(*sinks, mx::float32, s), {1, q.shape(1), 1}, s);
      scores.push_back(mx::broadcast_to(column, {end - begin, q.shape(1), 1}, s));
    }
    auto weights = mx::softmax(mx::concatenate(scores, -1, s), -1, true, s);
    std::optional<mx::array> sum;
    int from = 0;
    for (const auto& of : keys) {
      const int n = of.shape(-2);
      auto start = mx::Shape{0, 0, from}, stop = mx::Shape{end - begin, q.shape(1), from + n};
      auto first = mx::Shape(of.ndim(), 0), last = of.shape();
      last.back() = o.values;
      auto part = mx::matmul(mx::slice(weights, start, stop, s), mx::slice(of, first, last, s), s);
      sum = sum ? mx::add(*sum, part, s) : part;
      from += n;
    }
    return mx::astype(*sum, q.dtype(), s);
  }

  // Calls add with the keys [m, channels] of the windows of rows, and with which of them the rows see, [rows, m].
  template <class F>
  void add_window(const mx::array& near, const SparseRows& r, int begin, int end, F&& add) const {
    const int from = int(std::max<int64_t>(0, r.position + begin + 1 - o.window)), stop = int(r.position) + end;
    std::vector<int32_t> at(size_t(stop - from));
    std::iota(at.begin(), at.end(), from);
    auto positions = mx::array(at.begin(), {stop - from}, mx::int32);
    for (auto& p : at) {
      p %= near.shape(2);
    }
    auto slots = mx::array(at.begin(), {stop - from}, mx::int32);
    auto of = mx::take(stored_rows(near, near.shape(2), o.bits, s), slots, 0, s);
    auto own = mx::expand_dims(mx::arange(int(r.position) + begin, stop, 1, mx::int32, s), 1, s);
    auto seen = mx::logical_and(mx::less_equal(positions, own, s),
                                mx::greater(positions, mx::subtract(own, mx::array(o.window), s), s), s);
    add(of, seen);
  }
};

}  // namespace

std::vector<mx::array> choose_keys(const mx::array& queries, const mx::array& weights,
                                   const std::vector<mx::array>& stores, const std::vector<int>& segments,
                                   const std::optional<mx::array>& positions, int budget, int rate, int bits,
                                   mx::StreamOrDevice s) {
  auto list = parse_sparse("choose_keys", queries, stores, segments, positions, rate, bits);
  if (weights.shape() != mx::Shape{queries.shape(0), queries.shape(1)} || budget < 1 || budget > 1 << 24) {
    refuse("choose_keys: weights " + to_string(weights) + " or a budget of " + std::to_string(budget) +
           " do not fit queries " + to_string(queries));
  }
  auto q = as_type(queries, mx::float32, s), w = as_type(weights, mx::float32, s);
  if (!indexed_by_kernels(queries, stores[0], bits, s)) {
    return {by_block(list, ComposedChoice{q, w, stores, budget, rate, bits, s}, s), mx::zeros({1}, mx::uint8, s)};
  }
  std::vector<mx::array> inputs = stores;
  inputs.push_back(q);
  inputs.push_back(w);
  if (positions) {
    inputs.push_back(*positions);
  }
  const int at_q = int(stores.size()), heads = q.shape(1), dim = q.shape(2);
  auto body = [=, type = type_of(stores[0].dtype()), moves = positions.has_value()](const cpu::Memory& memory) {
    std::vector<cpu::IndexRows> all;
    for (size_t i = 0; i < list.size(); i++) {
      const SparseRows r = moved(list[i], moves ? memory.input<int32_t>(at_q + 2) : nullptr, rate);
      all.push_back({memory.input<float>(at_q) + int64_t(r.row) * heads * dim,
                     memory.input<float>(at_q + 1) + int64_t(r.row) * heads, memory.input<char>(int(i)), dim, type,
                     heads, dim, budget, rate, r.position, r.rows,
                     memory.output<int32_t>(0) + int64_t(r.row) * budget});
    }
    cpu::choose_keys(all);
    *memory.output<uint8_t>(1) = 0;
  };
  return cpu::node("choose_keys", std::move(inputs), {{q.shape(0), budget}, {1}}, {mx::int32, mx::uint8}, s,
                   std::move(body));
}

namespace {

void check_chosen(const mx::array& q, const std::optional<mx::array>& chosen, const std::vector<mx::array>& stores,
                  const std::vector<mx::array>& nears, const std::vector<SparseRows>& list,
                  const std::optional<mx::array>& sinks, const ChosenOptions& o) {
  if ((chosen && (chosen->ndim() != 2 || chosen->dtype() != mx::int32 || chosen->shape(0) != q.shape(0) ||
                  chosen->shape(1) < 1)) ||
      o.values < 1 || o.values > q.shape(2)) {
    refuse("attend_chosen: keys " + to_string(chosen ? *chosen : q) + " or " + std::to_string(o.values) +
           " channels of values do not fit queries " + to_string(q));
  }
  if (sinks && (sinks->ndim() != 1 || sinks->shape(0) != q.shape(1))) {
    refuse("attend_chosen: sinks " + to_string(*sinks) + " are not one number per head");
  }
  if (nears.empty() != (o.window == 0) || o.window < 0 || (!nears.empty() && nears.size() != stores.size()) ||
      (nears.empty() && !chosen && o.rate > 1)) {
    refuse("attend_chosen: " + std::to_string(nears.size()) + " stores of a window of " + std::to_string(o.window));
  }
  for (size_t i = 0; i < nears.size(); i++) {
    const auto &x = nears[i], &like = stores[i];
    if (x.ndim() != 4 || x.shape(0) != 1 || x.shape(1) != 1 || x.size() == 0 || x.shape(3) != like.shape(3) ||
        x.dtype() != like.dtype() || !holds_window(x, list[i], o.window)) {
      refuse("attend_chosen: storage " + to_string(x) + " of a window of " + std::to_string(o.window) +
             " does not fit the segment or storage " + to_string(like));
    }
  }
}

// Checks the choice [rows, budget] of rows: ascending indices of keys, then -1.
void check_indices(const int32_t* chosen, int64_t rows, int64_t budget, const SparseRows& r, bool may_be_none) {
  for (int64_t i = 0; i < rows; i++, chosen += budget) {
    const auto* end = std::find(chosen, chosen + budget, -1);
    const bool inside = std::all_of(chosen, end, [&](int32_t at) { return at >= 0 && at < r.capacity; });
    if (!inside || (end == chosen && !may_be_none)) {
      throw std::out_of_range("attend_chosen: row " + std::to_string(r.row + i) +
                              " has no key, or one beyond storage of " + std::to_string(r.capacity));
    }
  }
}

}  // namespace

std::vector<mx::array> attend_chosen(const mx::array& q, const std::optional<mx::array>& chosen,
                                     const std::vector<mx::array>& stores, const std::vector<mx::array>& nears,
                                     const std::vector<int>& segments, const std::optional<mx::array>& sinks,
                                     const std::optional<mx::array>& positions, const ChosenOptions& o,
                                     mx::StreamOrDevice s) {
  auto list = parse_sparse("attend_chosen", q, stores, segments, positions, o.rate, o.bits);
  check_chosen(q, chosen, stores, nears, list, sinks, o);
  if (!indexed_by_kernels(q, stores[0], o.bits, s)) {
    return {by_block(list, ComposedAttention{q, chosen, stores, nears, sinks, o, s}, s), mx::zeros({1}, mx::uint8, s)};
  }
  std::vector<mx::array> inputs = stores;
  inputs.insert(inputs.end(), nears.begin(), nears.end());
  const int at_near = int(stores.size()), at_q = int(inputs.size());
  inputs.push_back(q);
  int next = at_q + 1;
  auto optional = [&](const std::optional<mx::array>& x, mx::Dtype type) {
    if (!x) {
      return -1;
    }
    inputs.push_back(mx::astype(*x, type, s));
    return next++;
  };
  const int at_chosen = optional(chosen, mx::int32), at_sinks = optional(sinks, mx::float32),
            at_positions = optional(positions, mx::int32);
  const int budget = chosen ? chosen->shape(1) : 0;
  cpu::AttentionShape shape{type_of(q.dtype()), type_of(stores[0].dtype()), q.shape(1), 1, q.shape(2), o.values,
                            o.scale};
  shape.causal = false;
  shape.fast = cpu::math() == cpu::Math::fast;
  std::vector<int64_t> near_capacity;
  for (const auto& x : nears) {
    near_capacity.push_back(x.shape(2));
  }
  auto body = [=](const cpu::Memory& memory) {
    const int64_t size = shape.q_type == cpu::Type::f32 ? 4 : 2;
    std::vector<cpu::ChosenRows> all;
    for (size_t i = 0; i < list.size(); i++) {
      const bool windowed = !near_capacity.empty();
      const SparseRows r = moved(list[i], at_positions < 0 ? nullptr : memory.input<int32_t>(at_positions), o.rate);
      const int64_t first = std::max<int64_t>(0, r.position + 1 - o.window);
      if (windowed && r.position + r.rows - first > near_capacity[i]) {
        throw std::out_of_range("attend_chosen: " + std::to_string(r.rows) + " rows from position " +
                                std::to_string(r.position) + " do not fit a window's storage of " +
                                std::to_string(near_capacity[i]));
      }
      const int32_t* at = at_chosen < 0 ? nullptr : memory.input<int32_t>(at_chosen) + int64_t(r.row) * budget;
      if (at) {
        check_indices(at, r.rows, budget, r, windowed);
      }
      all.push_back({.q = memory.input<char>(at_q) + int64_t(r.row) * shape.heads * shape.dim * size,
                     .out = memory.output<char>(0) + int64_t(r.row) * shape.heads * shape.value_dim * size,
                     .position = r.position, .count = r.rows, .keys = memory.in[i], .chosen = at, .budget = budget,
                     .rate = o.rate, .near = windowed ? memory.in[size_t(at_near) + i] : nullptr,
                     .near_capacity = windowed ? near_capacity[i] : 0, .window = o.window});
    }
    cpu::attend_chosen(shape, all, at_sinks < 0 ? nullptr : memory.input<float>(at_sinks));
    *memory.output<uint8_t>(1) = 0;
  };
  return cpu::node("attend_chosen", std::move(inputs), {{q.shape(0), q.shape(1), o.values}, {1}},
                   {q.dtype(), mx::uint8}, s, std::move(body));
}

}  // namespace ingot
