"""Databases of HPCToolkit, version 2: XML, and values of single threads beside it."""

from __future__ import annotations

import struct

import numpy as np

# Frames and inlined functions repeat what their statements hold; so do loops.
XML = """<?xml version="1.0"?>
<!DOCTYPE HPCToolkitExperiment [<!ELEMENT HPCToolkitExperiment ANY>]>
<HPCToolkitExperiment version="2.2"><Header n="app"/><SecCallPathProfile><SecHeader>
<MetricTable>
<Metric i="12" n="CPUTIME (usec):Mean (I)" t="inclusive"/>
<Metric i="13" n="CPUTIME (usec):Mean (E)" t="exclusive"/>
<Metric i="10" n="CPUTIME (usec):Sum (I)" t="inclusive" md="time"/>
<Metric i="11" n="CPUTIME (usec):Sum (E)" t="exclusive"/>
</MetricTable>
<MetricDBTable>
<MetricDB i="0" n="CPUTIME (usec) (I)" db-id="0" db-num-metrics="2"/>
<MetricDB i="1" n="CPUTIME (usec) (E)" db-id="1" db-num-metrics="2"/>
</MetricDBTable>
<LoadModuleTable><LoadModule i="2" n="/bin/app"/></LoadModuleTable>
<FileTable><File i="3" n="./src/app.c"/></FileTable>
<ProcedureTable><Procedure i="4" n="&lt;program root&gt;"/><Procedure i="5" n="main"/>
<Procedure i="6" n="f&lt;int&gt;(int)"/></ProcedureTable>
</SecHeader><SecCallPathProfileData>
<M n="10" v="30"/><M n="12" v="15"/>
<PF i="2" n="4" lm="2" f="3" l="0"><M n="10" v="30"/>
 <C i="3" l="0"><PF i="4" n="5" lm="2" f="3" l="7"><M n="10" v="30"/><M n="11" v="20"/>
  <L i="5" l="9"><M n="10" v="20"/><M n="11" v="12"/>
   <S i="6" l="10"><M n="10" v="12"/><M n="11" v="12"/></S>
   <Pr i="7" n="6" lm="2" f="3" l="1" a="1"><M n="10" v="8"/><M n="11" v="8"/>
    <S i="8" l="2"><M n="10" v="8"/><M n="11" v="8"/></S></Pr></L>
  <C i="9" l="11"><PF i="10" n="6" lm="2" f="3" l="1"><M n="10" v="10"/><M n="11" v="10"/>
   <S i="11" l="2"><M n="10" v="10"/><M n="11" v="10"/></S></PF></C>
 </PF></C></PF>
</SecCallPathProfileData></SecCallPathProfile></HPCToolkitExperiment>
"""
STATEMENTS = {6: 12.0, 8: 8.0, 11: 10.0}


def write(directory, xml=XML, *, threads=1.0):
    """Write a database whose sum over all locations is `threads` times that of one."""
    directory.mkdir(exist_ok=True)
    xml = xml.replace('<M n="10" v="30"/><M n="12"', f'<M n="10" v="{30 * threads:g}"/><M n="12"')
    (directory / "experiment.xml").write_text(xml)
    return directory


def write_metric_db(directory, rank, thread, factor, *, order="big"):
    values = np.zeros((11, 2))
    values[0, 0] = 30 * factor
    for number, cost in STATEMENTS.items():
        values[number - 1] = cost * factor
    metric_db(directory, rank, thread, values, order=order)


def metric_db(directory, rank, thread, values, *, order="big"):
    """Write the values of a thread, [numbers of contexts from 1, metrics]."""
    sign = {"big": ">", "little": "<"}[order]
    head = f"HPCPROF-metricdb__00.10{order[0]}".encode() + struct.pack(f"{sign}ii", *values.shape)
    name = f"1.app-{rank:06d}-{thread:03d}-a8c00270-{100 + rank}-0.metric-db"
    (directory / name).write_bytes(head + values.astype(f"{sign}f8").tobytes())
