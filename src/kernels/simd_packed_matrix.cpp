// Products with a packed weight. A tile of rows × 16 outputs stays in registers while the loop runs over all
// inputs in order, so that a result is bit-identical in a tile of any height.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd_packed_matrix.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// (after highway.h)
#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd_loops.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PanelFloats = hn::CappedTag<float, packed_columns>;
using PanelInts = hn::RebindToSigned<PanelFloats>;
using PanelVector = hn::Vec<PanelFloats>;
using PanelSum = hn::Vec<PanelInts>;
constexpr int panel_lanes = static_cast<int>(hn::MaxLanes(PanelFloats()));
constexpr int vectors = packed_columns / panel_lanes;
constexpr int tile_rows = panel_lanes >= 16 ? 12 : 6;  // as many as fit into the registers

HWY_INLINE PanelVector widen(const float* from) { return hn::LoadU(PanelFloats(), from); }
HWY_INLINE PanelVector widen(const hwy::bfloat16_t* from) {
  return hn::PromoteTo(PanelFloats(), hn::LoadU(hn::Rebind<hwy::bfloat16_t, PanelFloats>(), from));
}

// Stores a row's sums for one panel; the last panel may have fewer than 16 outputs.
HWY_INLINE void store_panel(const PackedWork& w, const PanelVector* sums, int64_t row, int64_t column) {
  const PanelFloats d;
  float* y = w.y + row * w.outputs + column;
  if (column + packed_columns <= w.outputs) {
    for (int v = 0; v < vectors; ++v) {
      float* to = y + v * panel_lanes;
      hn::StoreU(sums[v], d, to);
    }
    return;
  }
  HWY_ALIGN float buffer[packed_columns];
  for (int v = 0; v < vectors; ++v) hn::StoreU(sums[v], d, buffer + v * panel_lanes);
  for (int64_t i = 0; i < w.outputs - column; ++i) y[i] = buffer[i];
}

struct FloatTile {
  template <int rows, class Weight>
  static HWY_INLINE void run(const PackedWork& w, const Weight* panel, int64_t row, int64_t column) {
    const PanelFloats d;
    PanelVector sums[rows][vectors];
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::LoadU(d, w.bias + column + v * panel_lanes);
    }
    const float* x = w.x + row * w.inputs;
    for (int64_t k = 0; k < w.inputs; ++k) {
      PanelVector values[vectors];
      for (int v = 0; v < vectors; ++v) values[v] = widen(panel + k * packed_columns + v * panel_lanes);
      for (int r = 0; r < rows; ++r) {
        const PanelVector factor = hn::Set(d, x[r * w.inputs + k]);
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, values[v], sums[r][v]);
      }
    }
    for (int r = 0; r < rows; ++r) store_panel(w, sums[r], row + r, column);
  }
};

// Integer dot products of `rows` rows with each output of a panel; inputs are taken in pairs.
#if HWY_TARGET == HWY_SCALAR
template <int rows>
HWY_INLINE void sum_pairs(const int16_t* x, const int8_t* panel, int64_t pairs, PanelSum (*sums)[vectors]) {
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      int32_t sum = 0;
      for (int64_t k = 0; k < 2 * pairs; ++k)  // mutate: only for processors without SIMD
        sum += x[r * 2 * pairs + k] * panel[(k / 2 * packed_columns + v) * 2 + k % 2];
      sums[r][v] = hn::Set(PanelInts(), sum);
    }
  }
}
#else
template <int rows>
HWY_INLINE void sum_pairs(const int16_t* x, const int8_t* panel, int64_t pairs, PanelSum (*sums)[vectors]) {
  const PanelInts d32;
  const hn::Repartition<int16_t, PanelInts> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  PanelSum even[rows][vectors], odd[rows][vectors];  // some instruction sets need two accumulators
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) even[r][v] = odd[r][v] = hn::Zero(d32);
  }
  for (int64_t k = 0; k < pairs; ++k) {
    hn::Vec<decltype(d16)> values[vectors];
    for (int v = 0; v < vectors; ++v)
      values[v] = hn::PromoteTo(d16, hn::LoadU(d8, panel + 2 * (k * packed_columns + v * panel_lanes)));
    for (int r = 0; r < rows; ++r) {
      int32_t both;  // two inputs of the row, for all outputs
      std::memcpy(&both, x + 2 * (r * pairs + k), sizeof both);
      const auto factors = hn::BitCast(d16, hn::Set(d32, both));
      for (int v = 0; v < vectors; ++v)
        even[r][v] = hn::ReorderWidenMulAccumulate(d32, factors, values[v], even[r][v], odd[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::RearrangeToOddPlusEven(even[r][v], odd[r][v]);
  }
}
#endif

struct Int8Tile {
  template <int rows>
  static HWY_INLINE void run(const PackedWork& w, const int8_t* panel, int64_t row, int64_t column) {
    const PanelFloats d;
    PanelSum sums[rows][vectors];
    const int64_t pairs = (w.inputs + 1) / 2;
    sum_pairs<rows>(w.quantised + row * 2 * pairs, panel, pairs, sums);
    for (int r = 0; r < rows; ++r) {
      const PanelVector scale = hn::Set(d, w.row_scales[row + r]);
      PanelVector scaled[vectors];
      for (int v = 0; v < vectors; ++v) {
        const int64_t at = column + v * panel_lanes;
        scaled[v] = hn::MulAdd(hn::ConvertTo(d, sums[r][v]), hn::Mul(scale, hn::LoadU(d, w.scales + at)),
                               hn::LoadU(d, w.bias + at));
      }
      store_panel(w, scaled, row + r, column);
    }
  }
};

// A tile of `count` ≤ `rows` rows: Tile::run needs the number at compile time.
template <class Tile, int rows, class Weight>
HWY_INLINE void run_tile(const PackedWork& w, const Weight* panel, int64_t row, int64_t column,
                         int64_t count) {
  if (count == rows) return Tile::template run<rows>(w, panel, row, column);
  if constexpr (rows > 1) run_tile<Tile, rows - 1>(w, panel, row, column, count);
}

constexpr int64_t min_tiles_to_prefetch =
    6;  // mutate: speed only; with fewer, too many requests would come at once

template <class Tile, class Weight>
HWY_INLINE void run_panels(const PackedWork& w, int64_t panel_size, int64_t begin, int64_t end) {
  const int64_t tiles = (w.rows + tile_rows - 1) / tile_rows;
  const int64_t share = (panel_size + tiles - 1) / tiles;   // mutate: speed only
  constexpr int64_t line = HWY_ALIGNMENT / sizeof(Weight);  // mutate: speed only
  for (int64_t panel = begin; panel < end; ++panel) {
    const Weight* weights = static_cast<const Weight*>(w.panels) + panel * panel_size;
    const Weight* next = weights + panel_size;  // mutate: speed only
    for (int64_t row = 0; row < w.rows; row += tile_rows, next += share) {
      // Prefetch the next panel while this one is used, one share per tile.
      if (tiles >= min_tiles_to_prefetch && panel + 1 < end) {              // mutate: speed only
        for (int64_t i = 0; i < share; i += line) hwy::Prefetch(next + i);  // mutate: speed only
      }
      run_tile<Tile, tile_rows>(w, weights, row, panel * packed_columns,
                                std::min<int64_t>(tile_rows, w.rows - row));
    }
  }
}

void PackedFloat32(const PackedWork& w, int64_t begin, int64_t end) {
  run_panels<FloatTile, float>(w, w.inputs * packed_columns, begin, end);
}
void PackedBfloat16(const PackedWork& w, int64_t begin, int64_t end) {
  run_panels<FloatTile, hwy::bfloat16_t>(w, w.inputs * packed_columns, begin, end);
}
void PackedInt8(const PackedWork& w, int64_t begin, int64_t end) {
  run_panels<Int8Tile, int8_t>(w, (w.inputs + 1) / 2 * 2 * packed_columns, begin, end);
}

void QuantiseRows(const float* x, int64_t width, int64_t rows, float limit, int16_t* quantised,
                  float* scales) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = (width + 1) / 2 * 2;
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * width;
    int16_t* to = quantised + row * stride;
    auto largest = hn::Zero(d);
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) largest = hn::Max(largest, hn::Abs(hn::LoadU(d, from + i)));
    float maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
    for (; i < width; ++i) maximum = std::max(maximum, std::abs(from[i]));
    scales[row] = maximum / limit;
    const float inverse = maximum > 0 ? limit / maximum : 0;
    const auto factor = hn::Set(d, inverse);
    for (i = 0; i + lanes <= width; i += lanes)
      hn::StoreU(hn::DemoteTo(d16, hn::NearestInt(hn::Mul(hn::LoadU(d, from + i), factor))), d16, to + i);
    for (; i < width; ++i) to[i] = static_cast<int16_t>(std::lrint(from[i] * inverse));
    if (width < stride) to[width] = 0;
  }
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace calque::simd {

HWY_EXPORT(PackedFloat32);
HWY_EXPORT(PackedBfloat16);
HWY_EXPORT(PackedInt8);
HWY_EXPORT(QuantiseRows);

void packed_float32(const PackedWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(PackedFloat32)(work, begin, end);
}
void packed_bfloat16(const PackedWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(PackedBfloat16)(work, begin, end);
}
void packed_int8(const PackedWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(PackedInt8)(work, begin, end);
}
void quantise_rows(const float* x, int64_t width, int64_t rows, float limit, int16_t* quantised,
                   float* scales) {
  HWY_DYNAMIC_DISPATCH(QuantiseRows)(x, width, rows, limit, quantised, scales);
}

}  // namespace calque::simd
#endif
