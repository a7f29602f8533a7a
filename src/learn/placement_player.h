// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "learn/episode_player.h"
#include "learn/placement_env.h"

// Placing pods as an evolution strategy learns it.

namespace rudderfish {

// The world's reference, without fragmentation where that is not weighed.
EvolutionStart PlacementStart(const PlacementWorld& world);

// An episode costs PlacementCost: the objective's mean over time, and a node's share for each pod
// that waits. REQUIRES: the world is of no preset and outlives the player.
std::unique_ptr<EpisodePlayer> NewPlacementPlayer(const PlacementWorld& world);

}  // namespace rudderfish
