// SPDX-License-Identifier: Apache-2.0
#include "control/scheduling_tables.h"

#include <gtest/gtest.h>

#include <string>

namespace rudderfish {
namespace {

SchedulingNode TableNode(const std::string& name, int64_t cpu_millis = 1000) {
  SchedulingNode node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}};
  node.allocatable = {cpu_millis, int64_t{1} << 30};
  node.pods_max = 110;
  return node;
}

std::shared_ptr<PodClass> TableShape(const std::string& label) {
  auto shape = std::make_shared<PodClass>();
  shape->labels = {{"pod", label}};
  shape->amounts.held = shape->amounts.requests = {100, 0};
  return shape;
}

TEST(SchedulingTables, AreWhatAFreshStartMakesOfTheSamePods) {
  SchedulingTables tables, fresh;
  auto shape = std::make_shared<PodClass>();
  shape->amounts.held = shape->amounts.requests = {100, 0};
  tables.PutNode(TableNode("a"));
  tables.Rules();
  tables.Place("x", shape, "a", PodLife::kServing);
  tables.Place("y", shape, "b", PodLife::kServing);  // Node b has not been seen yet.
  tables.PutNode(TableNode("b"));
  tables.PutNode(TableNode("a", 2000));
  tables.Rules();
  tables.Place("x", shape, "a", PodLife::kTerminating);
  tables.Place("z", shape, "a", PodLife::kServing);
  tables.Remove("z");
  const auto free = [&](const char* node) {
    const NodeTable& nodes = tables.Rules().nodes();
    return nodes.free(NodeTable::kCpu)[nodes.Find(node)];
  };
  EXPECT_EQ(free("a"), 1900);
  EXPECT_EQ(free("b"), 900);
  tables.RemoveNode("a");
  EXPECT_EQ(tables.Rules().nodes().size(), 1);
  EXPECT_EQ(free("b"), 900);
}

TEST(SchedulingTables, KnowTheShapeOfWhatTakesRoom) {
  SchedulingTables tables;
  const auto shape = TableShape("x");
  tables.Place("x", shape, "a", PodLife::kServing);
  EXPECT_EQ(tables.ShapeOf("x"), shape);
  tables.Remove("x");
  EXPECT_EQ(tables.ShapeOf("x"), nullptr);
}

TEST(SchedulingTables, WhatHasNotChangedIsNoNews) {
  SchedulingTables tables;
  EXPECT_TRUE(tables.PutNode(TableNode("a")));
  EXPECT_FALSE(tables.PutNode(TableNode("a")));
  EXPECT_TRUE(tables.PutNode(TableNode("a", 2000)));
}

TEST(SchedulingTables, WhatIsAttachedToANodeIsKnownHoweverLateTheNodeIs) {
  const CsiVolume volume{"disk", "a"}, other{"disk", "b"}, third{"disk", "c"};
  using Attachments = SchedulingTables::Attachments;
  SchedulingTables tables;
  EXPECT_EQ(tables.PutAttachments("a", {volume}), Attachments::kMore);
  EXPECT_EQ(tables.PutAttachments("a", {volume}), Attachments::kAsTheyWere);
  EXPECT_EQ(tables.PutAttachments("b", {}), Attachments::kAsTheyWere);
  SchedulingNode node = TableNode("a");
  node.volume_limits = {{"disk", 2}};
  tables.PutNode(node);
  auto shape = TableShape("x");
  shape->attached = {other, third};
  const auto fits = [&] {
    Feasibility found;
    SchedulingRules& rules = tables.Rules();
    rules.Filter(rules.Register(shape), &found);
    return found.IsFeasible(rules.nodes().Find("a"));
  };
  EXPECT_FALSE(fits());
  EXPECT_EQ(tables.PutAttachments("a", {}), Attachments::kFewer);
  EXPECT_TRUE(fits());
  EXPECT_EQ(tables.PutAttachments("a", {volume}), Attachments::kMore);
  EXPECT_FALSE(fits());
  EXPECT_EQ(tables.PutAttachments("a", {other}), Attachments::kFewer);
  EXPECT_FALSE(fits());
  tables.PutNode(TableNode("b"));  // Rebuilds all.
  EXPECT_FALSE(fits());
  tables.RemoveNode("b");
  tables.PutAttachments("a", {});
  EXPECT_TRUE(fits());
}

// Of a StatefulSet, an indexed Job, a CronJob: each pod is a class of its own.
TEST(SchedulingTables, PodsThatRunCostNothingForEachNode) {
  SchedulingTables tables;
  for (const char* name : {"a", "b"}) tables.PutNode(TableNode(name));
  for (int i = 0; i < 5; ++i)
    tables.Place(std::to_string(i), TableShape(std::to_string(i)), "a", PodLife::kServing);
  EXPECT_EQ(tables.Rules().class_count(), 5);
  EXPECT_EQ(tables.Rules().question_count(), 0);
  const auto asked = TableShape("2");  // One of those that run.
  Feasibility feasibility;
  tables.Rules().Filter(tables.Rules().Register(asked), &feasibility);
  EXPECT_EQ(tables.Rules().class_count(), 5);
  EXPECT_EQ(tables.Rules().question_count(), 1);
  EXPECT_EQ(feasibility.feasible, 2);
}

TEST(SchedulingTables, KeepAnswersForNoMoreThanAThousandClasses) {
  SchedulingTables tables;
  tables.PutNode(TableNode("a"));
  SchedulingNode tainted = TableNode("b");
  tainted.taints = {{"dedicated", "x", TaintEffect::kNoSchedule}};
  tables.PutNode(tainted);
  const auto first = TableShape("first");
  Feasibility feasibility;
  for (int i = 0; i < 3000; ++i) {
    SchedulingRules& rules = tables.Rules();
    rules.Register(TableShape(std::to_string(i)));
    EXPECT_LE(rules.question_count(), 1025);
    rules.Filter(rules.Register(first), &feasibility);
    EXPECT_EQ(feasibility.feasible, 1);
  }
}

// A pod that keeps away from all pods of namespaces with that label.
std::shared_ptr<PodClass> ShyOf(const std::string& stage) {
  using Operator = LabelRequirement::Operator;
  auto shape = std::make_shared<PodClass>();
  shape->object_namespace = "default";
  shape->forbidden_pods = {{{},
                            LabelSelector{{{"stage", Operator::kIn, {stage}}}},
                            LabelSelector{},
                            "kubernetes.io/hostname"}};
  return shape;
}

std::shared_ptr<PodClass> PlainIn(const std::string& name) {
  auto shape = std::make_shared<PodClass>();
  shape->object_namespace = name;
  return shape;
}

bool MayTake(SchedulingTables* tables, const std::shared_ptr<const PodClass>& shape) {
  SchedulingRules& rules = tables->Rules();
  Feasibility feasibility;
  rules.Filter(rules.Register(shape), &feasibility);
  return feasibility.feasible > 0;
}

TEST(SchedulingTables, ANamespaceInWhichNoPodIsKnownIsEnteredInPlace) {
  SchedulingTables tables;
  tables.PutNode(TableNode("a"));
  tables.Place("default/shy", ShyOf("live"), "a", PodLife::kServing);
  tables.Rules();
  const int64_t rebuilds = tables.rebuilds();
  EXPECT_TRUE(tables.PutNamespace("first", {{"stage", "test"}}));
  EXPECT_TRUE(tables.PutNamespace("second", {{"stage", "test"}}));
  EXPECT_TRUE(tables.PutNamespace("second", {{"stage", "live"}}));
  EXPECT_FALSE(tables.PutNamespace("second", {{"stage", "live"}}));
  EXPECT_TRUE(MayTake(&tables, PlainIn("first")));
  EXPECT_FALSE(MayTake(&tables, PlainIn("second")));
  EXPECT_EQ(tables.rebuilds(), rebuilds);
}

TEST(SchedulingTables, SelectedLabelsOfANamespaceRebuildTheTablesIfPodsAreKnownInIt) {
  SchedulingTables tables;
  tables.PutNode(TableNode("a"));
  tables.Place("default/shy", ShyOf("live"), "a", PodLife::kServing);
  const auto early = PlainIn("first");
  EXPECT_TRUE(MayTake(&tables, early));  // Its namespace has not been seen yet.
  tables.PutNamespace("first", {{"stage", "live"}});
  EXPECT_FALSE(MayTake(&tables, early));
  tables.PutNamespace("first", {{"stage", "test"}});
  EXPECT_TRUE(MayTake(&tables, early));
  EXPECT_EQ(tables.rebuilds(), 3);
}

TEST(SchedulingTables, LabelsOfNamespacesThatNoPodSelectsAreEnteredInPlace) {
  SchedulingTables tables;
  tables.PutNode(TableNode("a"));
  const auto early = PlainIn("first");
  EXPECT_TRUE(MayTake(&tables, early));
  tables.PutNamespace("first", {{"stage", "live"}});
  EXPECT_TRUE(MayTake(&tables, early));
  tables.Place("default/shy", ShyOf("live"), "a", PodLife::kServing);
  EXPECT_FALSE(MayTake(&tables, early));
  EXPECT_EQ(tables.rebuilds(), 1);
}

}  // namespace
}  // namespace rudderfish
